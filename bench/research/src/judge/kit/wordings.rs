//! The sentences of the chats, in four languages. `{name}`, `{day}`, `{city}`, `{thing}`, `{file}`
//! and `{number}` are filled with values that occur nowhere else in the chat; `{old}` is the value
//! that an update replaces. None is chosen to suit `extract`.

mod east_asia;

use east_asia::{CHINESE, JAPANESE, KOREAN};

/// The sentences and values of one language.
pub(super) struct Language {
    pub(super) name: &'static str,
    pub(super) names: &'static [&'static str],
    pub(super) days: &'static [&'static str],
    pub(super) cities: &'static [&'static str],
    pub(super) things: &'static [&'static str],
    pub(super) files: &'static [&'static str],
    pub(super) rules: &'static [&'static str],
    pub(super) goals: &'static [&'static str],
    pub(super) preferences: &'static [&'static str],
    pub(super) facts: &'static [&'static str],
    /// A fact, and its later updates.
    pub(super) updates: &'static [(&'static str, &'static [&'static str])],
    /// First messages of the user.
    pub(super) openings: &'static [&'static str],
    /// Messages of the user that nobody needs later.
    pub(super) small_talk: &'static [&'static str],
    pub(super) acknowledgements: &'static [&'static str],
    /// Answers of the assistant.
    pub(super) answers: &'static [&'static str],
}

pub(super) const LANGUAGES: [&Language; 4] = [&ENGLISH, &CHINESE, &JAPANESE, &KOREAN];

static ENGLISH: Language = Language {
    name: "English",
    names: &[
        "Marlene",
        "Okonkwo",
        "Birgit",
        "Tomasz",
        "Ines",
        "Farid",
        "Leocadia",
        "Hamish",
        "Yusuf",
        "Petronella",
        "Anselm",
        "Dagny",
    ],
    days: &[
        "Mondays",
        "Tuesdays",
        "Wednesdays",
        "Thursdays",
        "Fridays",
        "Saturdays",
        "Sundays",
    ],
    cities: &[
        "Trieste", "Bergen", "Porto", "Gdansk", "Valletta", "Ghent", "Turku", "Zadar", "Cork",
        "Aarhus", "Split", "Bilbao",
    ],
    things: &[
        "the tide chart",
        "the crew roster",
        "the invoice form",
        "the berth map",
        "the fuel log",
        "the customs sheet",
    ],
    files: &[
        "ledger.csv",
        "berths.toml",
        "quay.rs",
        "manifest.xml",
        "rates.json",
        "crew.sql",
    ],
    rules: &[
        "Never send anything to {name} without asking me first.",
        "Please don't touch {file}, other people depend on it.",
        "Whatever we do, nothing may go out on {day}.",
        "{thing} has to stay under {number} lines.",
        "All prices must be shown with {number} decimals of rounding slack.",
        "You are not allowed to mention {city} in any draft.",
        "Only {name} may approve changes of {thing}.",
        "under no circumstances rename {file}",
    ],
    goals: &[
        "What I want in the end is {thing} ready for the visitors from {city}.",
        "The goal is to serve {number} boats a day without a queue.",
        "By the end of the season {name} should be able to run this alone.",
        "I'm trying to get rid of {file} altogether.",
        "We need {number} sign-ups before the fair, that's the whole point.",
    ],
    preferences: &[
        "I like short answers, at most {number} words.",
        "I'd rather have {thing} as a table than as text.",
        "Call me {name}, not by my surname.",
        "When in doubt take the way {name} does it, I find it clearer.",
        "I prefer mornings, {day} are best for me.",
        "For examples please use {city}, I know it well.",
    ],
    facts: &[
        "Our contact in {city} is called {name}.",
        "By the way, the alarm code is {number}.",
        "{thing} is kept by {name}.",
        "The old data is in {file}.",
        "The office in {city} is closed on {day}.",
        "My membership number is {number}.",
        "I am allergic to hazelnuts since {number}.",
    ],
    updates: &[
        (
            "The budget is {number} euros.",
            &[
                "The budget went up to {number} euros.",
                "Correction: the budget is {number} euros.",
                "We now have {number} euros to spend.",
            ],
        ),
        (
            "{thing} is due in week {number}.",
            &[
                "They moved it, {thing} is due in week {number} now.",
                "Actually {thing} is due in week {number}.",
            ],
        ),
        (
            "The server listens on port {number}.",
            &[
                "I changed the port to {number}.",
                "The server listens on port {number} from now on, not {old}.",
            ],
        ),
        (
            "The meeting is in {city}.",
            &[
                "The meeting is in {city} after all.",
                "Change of plan, we meet in {city} instead.",
            ],
        ),
        (
            "Send the draft to {name}.",
            &[
                "Send the draft to {name} instead.",
                "{name} took over, so the draft goes there.",
            ],
        ),
        (
            "We expect {number} guests.",
            &[
                "It will be {number} guests, I just heard.",
                "Make that {number} guests.",
            ],
        ),
    ],
    openings: &[
        "Hi! I'd like to talk through the plans for our little harbour museum.",
        "Hello, can you help me think about the sailing club's new website?",
        "Good morning! Let's go on with preparing the boat fair.",
    ],
    small_talk: &[
        "The weather is awful today, it has been raining since breakfast.",
        "My neighbour's cat sat on my keyboard again, sorry for the typos.",
        "I just made a coffee, so I'm back.",
        "Funny how quickly the afternoon goes by when one talks.",
        "I saw a nice film last night, nothing to do with this though.",
        "The train was late again, so I have some time now.",
        "What do you think about that in general?",
        "Can you explain a bit more what you mean?",
        "That reminds me of a holiday a long time ago.",
        "I'm not sure, let me think about it for a moment.",
        "Could you say that once more in other words?",
        "My colleague is laughing at me because I talk to a computer.",
    ],
    acknowledgements: &[
        "ok",
        "Thanks!",
        "Sounds good.",
        "Yes, exactly.",
        "Great, thank you!",
        "I see.",
        "Haha, right.",
        "Perfect.",
        "Cool, go on.",
    ],
    answers: &[
        "Of course! I'm happy to help with that. Just tell me how you would like to go on.",
        "That makes sense. There are several ways to look at it, and each has its charm.",
        "Sure, no problem at all. Take your time, we can come back to this whenever you like.",
        "Thanks for telling me. I'll keep it in mind while we talk about the rest.",
        "Good question! In general it depends on what matters most to you and to the people around you.",
        "I understand. Such days happen, and a warm drink often helps more than one would think.",
        "Understood!",
        "You're welcome! Is there anything else that you'd like to talk about?",
        "Interesting. Many people feel the same, and it often helps to write things down step by step.",
        "Noted. Shall we look at the next point, or stay with this one a little longer?",
    ],
};
