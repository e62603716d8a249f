//! Compares the estimate with the exact count, on texts that were not used to measure its averages.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::bpe::Bpe;

const ENGLISH: &str = "\
A ship's load line is a circle with a line through it, painted amidships on both sides of the \
hull. Before there was such a mark, owners could send vessels to sea so heavily laden that the \
first gale would swamp them, and the insurance was often worth more than the crew. Samuel \
Plimsoll, a coal merchant who sat in Parliament, made it his business to end that; it took him \
the better part of a decade, one famous outburst on the floor of the House, and a public that \
didn't let the matter rest.

The mark isn't a single line. Salt water carries more than fresh, cold water more than warm, and \
a winter crossing of the North Atlantic asks for a larger reserve than a summer passage through \
the tropics. So beside the circle there's a ladder of short lines, each with a letter or two: TF, \
F, T, S, W, WNA. A surveyor who walks along the quay can tell at a glance whether the vessel is \
loaded within what the voyage allows, without asking anyone, and that's the whole point of it.

What would the same idea look like for a program? First you need to know how much you carry, and \
you need to know it before you leave the harbour rather than after the first wave breaks over \
the deck. Second, somebody has to decide what stays behind when there's too much: not the \
lifeboats, surely, and not the papers that say where you're going. Finally, what was left on the \
quay should be listed, and somebody should be able to send it after you.";

const CHINESE: &str = "\
载重线是画在船舷中部的一个圆圈和一条横线。在有这个标志之前，船东可以让船只超载出海，遇到第一场大风就会\
沉没，而保险金往往比船员的性命更值钱。普利姆索尔是一位煤炭商人，也是国会议员，他用了将近十年的时间，\
才让这条规定成为法律。今天，检查人员只要在码头上走一圈，看一眼水面和横线的位置，就知道这艘船有没有\
超载，不需要问任何人。\n\n程序也可以这样做。首先，我们必须知道自己装了多少东西，而且要在出发之前知道，\
而不是等到出了问题以后。其次，如果东西太多，要有人决定哪些留下，哪些带走。最后，留在岸上的东西应该有\
一份清单，需要的时候可以随时取回来。";

const TRADITIONAL: &str = "\
載重線是畫在船舷中部的一個圓圈和一條橫線。在有這個標誌之前，船東可以讓船隻超載出海，遇到第一場大風就會\
沉沒，而保險金往往比船員的性命更值錢。今天，檢查人員只要在碼頭上走一圈，看一眼水面和橫線的位置，就知道\
這艘船有沒有超載，不需要問任何人。程式也可以這樣做。首先，我們必須知道自己裝了多少東西，而且要在出發之前\
知道，而不是等到出了問題以後。其次，如果東西太多，要有人決定哪些留下，哪些帶走。";

const JAPANESE: &str = "\
満載喫水線は、船体の中央に描かれた円と横線です。この印がなかった時代には、船主は船に荷物を積みすぎたまま\
出港させることができました。最初の嵐で沈んでしまうことも多く、保険金のほうが乗組員の命よりも高かったので\
す。今では、検査官が岸壁を歩いて水面と線の位置を見るだけで、積みすぎかどうかがすぐに分かります。プログラム\
でも同じことができます。まず、どれだけ積んでいるかを出発する前に知らなければなりません。次に、多すぎるとき\
は何を残すかを決める必要があります。最後に、岸に残したものの一覧を作り、必要になったらいつでも取り寄せられる\
ようにしておきます。データベースとネットワークの設定も確認してください。";

const KOREAN: &str = "\
만재흘수선은 선체 중앙에 그려진 원과 가로선입니다. 이 표시가 없던 시절에는 선주가 배에 짐을 너무 많이 싣고 \
출항시킬 수 있었습니다. 첫 번째 폭풍에 가라앉는 일도 많았고, 보험금이 선원의 목숨보다 더 비쌌습니다. 지금은 \
검사관이 부두를 걸으면서 수면과 선의 위치를 보기만 하면 짐을 너무 많이 실었는지 바로 알 수 있습니다. 프로그램도 \
마찬가지입니다. 먼저 얼마나 싣고 있는지 출발하기 전에 알아야 합니다. 다음으로, 너무 많을 때 무엇을 남길지 결정해야 \
합니다. 마지막으로, 남겨 둔 것의 목록을 만들어 필요할 때 언제든지 가져올 수 있게 합니다.";

const RUSSIAN: &str = "\
Грузовая марка — это круг с горизонтальной линией, нанесённый посередине борта. Пока её не было, \
владельцы могли отправлять в море перегруженные суда, которые тонули в первый же шторм. Теперь \
инспектор, проходя по причалу, сразу видит, не перегружено ли судно, и никого не нужно спрашивать. \
С программой можно поступить так же: сначала узнать, сколько она везёт, и только потом выходить в море.";

const GERMAN: &str = "\
Die Lademarke ist ein Kreis mit einem waagerechten Strich, der mittschiffs auf beiden Seiten des \
Rumpfes aufgemalt ist. Bevor es sie gab, konnten Reeder ihre Schiffe so schwer beladen auslaufen \
lassen, dass der erste Sturm sie versenkte, und die Versicherung war oft mehr wert als die \
Mannschaft. Heute genügt dem Prüfer ein Blick von der Kaimauer aus, um zu sehen, ob das Schiff \
überladen ist. Für Programme könnte dasselbe gelten: Zuerst muss man wissen, was man trägt.";

/// Returns bytes that look random and are the same on every machine.
fn noise(count: usize) -> impl Iterator<Item = u8> {
    let next = |state: &u64| {
        Some(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        )
    };
    let states = std::iter::successors(Some(20_240_531_u64), next);
    states.skip(1).take(count).map(|state| (state >> 56) as u8)
}

fn base64(count: usize) -> String {
    let alphabet = [
        ('A'..='Z').collect(),
        ('a'..='z').collect(),
        ('0'..='9').collect(),
        vec!['+', '/'],
    ]
    .concat();
    noise(count)
        .map(|byte| alphabet[usize::from(byte) % 64])
        .collect()
}

fn hex(count: usize) -> String {
    noise(count).fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn bookings() -> serde_json::Value {
    let flights = (0..25).map(|n| {
        json!({
            "flight_number": format!("HAT{:03}", n * 37 % 300),
            "origin": (["JFK", "SEA", "ORD", "MCO"][n % 4]),
            "scheduled_departure_time_est": format!("{:02}:00:00", n % 24),
            "date": format!("2024-05-{:02}", n + 1),
            "status": if n % 3 == 0 { "available" } else { "landed" },
            "prices": {"basic_economy": 51 + n, "compaction_timing": 101 + 3 * n, "business": null},
            "passengers": [{"first_name": "Sofia", "last_name": "Kim", "dob": "1990-04-05"}],
        })
    });
    json!({ "flights": flights.collect::<Vec<_>>(), "next_page": false })
}

#[test]
fn the_estimate_is_near_the_exact_count() {
    let exact = Bpe::o200k();
    for (name, text, percent) in [
        ("english", ENGLISH.to_owned(), 10),
        ("code", include_str!("../exchange.rs").to_owned(), 10),
        ("code", include_str!("../counter.rs").to_owned(), 10),
        ("json", bookings().to_string(), 10),
        ("indented json", format!("{:#}", bookings()), 10),
        ("chinese", CHINESE.to_owned(), 20),
        ("traditional chinese", TRADITIONAL.to_owned(), 20),
        ("japanese", JAPANESE.to_owned(), 20),
        ("korean", KOREAN.to_owned(), 20),
        ("russian", RUSSIAN.to_owned(), 20),
        ("german", GERMAN.to_owned(), 20),
        ("base64", base64(8_000), 6),
        (
            "base64 in json",
            json!({ "data": base64(3_000) }).to_string(),
            6,
        ),
        (
            "a key in prose",
            format!("export TOKEN={}\n", base64(40)).repeat(20),
            10,
        ),
        ("hex", hex(4_000), 6),
        ("digits", "3.14159, 2718281828, -42\n".repeat(50), 10),
        (
            "emoji",
            "done 🎉 shipped 🚀, tests ✅ docs 📝 bug 🐛\n".repeat(20),
            20,
        ),
        ("rules", "-".repeat(80) + "\n" + &"=".repeat(70) + "\n", 25),
        ("blanks", format!("{}x\n", " ".repeat(60)).repeat(40), 25),
    ] {
        let (actual, estimate) = (exact.text(&text).0, Estimate.text(&text).0);
        let off = actual.abs_diff(estimate) * 1_000 / actual;
        println!("{name}: exact {actual}, estimate {estimate}, off {off} ‰");
        assert!(
            off <= percent * 10,
            "{name}: exact {actual}, estimate {estimate}, off {off} ‰"
        );
    }
}

#[test]
fn no_text_is_no_token() {
    assert_eq!(Estimate.text(""), Tokens(0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A token has at least one byte, so no count exceeds the number of bytes.
    #[test]
    fn any_text_has_a_weight(text in "(\\PC|[ -~]|[\\s\u{4e00}-\u{4e10}é\u{ff01}🦀A-Za-z0-9+/=\"]){0,200}") {
        let weight = Estimate.text(&text).0;
        prop_assert!(weight <= text.len() as u64);
        prop_assert_eq!(weight == 0, text.is_empty());
    }
}
