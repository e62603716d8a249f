//! Average sizes of pieces of text in o200k, and the scripts that are distinguished. `estimate.rs`
//! finds the pieces.

use super::{Case, Lead};

/// Thousandths of a token, the unit of most sizes here.
pub(super) const MILLI: u64 = 1_000;

/// A common ideograph in a clause without kana.
pub(super) const HAN: u64 = 670;
/// An ideograph used only in traditional Chinese: the vocabulary has few words with it.
pub(super) const TRADITIONAL: u64 = 1_540;
/// An ideograph in a clause with kana.
pub(super) const KANJI: u64 = 876;
/// A letter of hiragana.
pub(super) const HIRAGANA: u64 = 631;
/// A letter of katakana.
pub(super) const KATAKANA: u64 = 658;
/// A syllable of Hangul.
pub(super) const HANGUL: u64 = 593;
/// The size of a clause of Chinese, Japanese or Korean in addition to its characters.
pub(super) const CLAUSE: u64 = 368;

/// Scripts above ASCII, as far as their sizes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Indic,
    Thai,
    Georgian,
    Han,
    Hiragana,
    Katakana,
    Hangul,
    Emoji,
    Symbol,
    Other,
}

/// The size of a piece as a function of its length in characters.
#[derive(Debug)]
pub(super) enum Weight {
    /// Sizes for 1 to 12 characters in hundredths of a token, and the size of each further
    /// character.
    Table([u16; 12], u16),
    /// `base + slope · length` in thousandths, at least one token.
    Line(i64, i64),
}

impl Weight {
    /// A word with letters beyond ASCII.
    pub(super) const ACCENTED: Self = Self::Line(546, 251);
    /// Runs of up to about 80 blanks are one token.
    pub(super) const BLANKS: Self = Self::Line(900, 6);
    pub(super) const LINES: Self = Self::Line(500, 60);
    /// Different signs, such as `);` or `!==`.
    pub(super) const SIGNS: Self = table(
        [100, 102, 121, 172, 244, 310, 380, 450, 510, 570, 630, 690],
        60,
    );
    /// Different signs including a quotation mark, such as `":{"`: mostly JSON.
    pub(super) const SIGNS_QUOTE: Self = table(
        [100, 100, 112, 157, 191, 270, 335, 390, 445, 500, 555, 610],
        55,
    );
    /// One repeated sign, such as `----`.
    pub(super) const SIGNS_SAME: Self = table(
        [100, 101, 102, 125, 115, 140, 150, 150, 150, 155, 160, 160],
        1,
    );
    /// Signs with the line ends after them, such as `{` at the end of a line.
    pub(super) const SIGNS_LINE: Self = table(
        [100, 103, 121, 150, 230, 270, 300, 330, 350, 370, 390, 410],
        20,
    );

    // Words of small letters, by their lead.
    const LOWER_BLANK: Self = table(
        [100, 100, 101, 102, 104, 105, 108, 110, 113, 114, 118, 125],
        8,
    );
    const LOWER_JOINT: Self = table(
        [100, 102, 108, 115, 117, 124, 154, 159, 184, 210, 215, 245],
        12,
    );
    const LOWER_SIGN: Self = table(
        [102, 155, 162, 147, 149, 145, 160, 188, 220, 222, 237, 245],
        12,
    );
    const LOWER_NOTHING: Self = table(
        [100, 100, 102, 105, 112, 113, 129, 145, 147, 148, 155, 190],
        13,
    );
    const LOWER_QUOTE: Self = table(
        [100, 100, 103, 102, 103, 104, 110, 115, 130, 130, 140, 160],
        15,
    );
    const LOWER_INSIDE: Self = table(
        [100, 100, 127, 130, 135, 180, 200, 202, 205, 212, 230, 260],
        20,
    );
    // Words that begin with capitals.
    const TITLE_BLANK: Self = table(
        [100, 100, 105, 104, 112, 114, 119, 133, 143, 158, 170, 185],
        15,
    );
    const TITLE_SIGN: Self = table(
        [100, 155, 165, 150, 162, 177, 203, 215, 217, 225, 250, 260],
        20,
    );
    const TITLE_NOTHING: Self = table(
        [100, 100, 105, 105, 109, 112, 117, 122, 132, 145, 152, 165],
        15,
    );
    const TITLE_INSIDE: Self = table(
        [100, 101, 104, 103, 104, 105, 110, 111, 117, 117, 120, 140],
        12,
    );
    // Words of capitals.
    const UPPER_BLANK: Self = table(
        [100, 102, 116, 145, 160, 163, 177, 207, 230, 250, 280, 310],
        25,
    );
    const UPPER_SIGN: Self = table(
        [104, 120, 150, 152, 160, 175, 195, 210, 250, 265, 290, 305],
        25,
    );
    const UPPER_NOTHING: Self = table(
        [100, 100, 120, 155, 157, 170, 187, 230, 260, 280, 295, 320],
        25,
    );
    const UPPER_INSIDE: Self = table(
        [100, 100, 126, 180, 215, 220, 250, 265, 290, 320, 340, 360],
        25,
    );

    /// Returns the size of a word of ASCII letters.
    #[inline]
    pub(super) fn word(case: Case, lead: Lead) -> &'static Self {
        match (case, lead) {
            (Case::Lower, Lead::Blank) => &Self::LOWER_BLANK,
            (Case::Lower, Lead::Joint) => &Self::LOWER_JOINT,
            (Case::Lower, Lead::Sign) => &Self::LOWER_SIGN,
            (Case::Lower, Lead::Nothing) => &Self::LOWER_NOTHING,
            (Case::Lower, Lead::Quote) => &Self::LOWER_QUOTE,
            (Case::Lower, Lead::Inside) => &Self::LOWER_INSIDE,
            (Case::Title, Lead::Blank) => &Self::TITLE_BLANK,
            (Case::Title, Lead::Joint | Lead::Sign) => &Self::TITLE_SIGN,
            (Case::Title, Lead::Nothing | Lead::Quote) => &Self::TITLE_NOTHING,
            (Case::Title, Lead::Inside) => &Self::TITLE_INSIDE,
            (Case::Upper, Lead::Blank) => &Self::UPPER_BLANK,
            (Case::Upper, Lead::Joint | Lead::Sign) => &Self::UPPER_SIGN,
            (Case::Upper, Lead::Nothing | Lead::Quote) => &Self::UPPER_NOTHING,
            (Case::Upper, Lead::Inside) => &Self::UPPER_INSIDE,
            (Case::None, _) => &Self::ACCENTED,
        }
    }

    /// Returns the size of a run of another script; `same` if it repeats one character.
    pub(super) fn run(script: Script, same: bool) -> &'static Self {
        match script {
            Script::Greek => &Self::Line(130, 398),
            Script::Cyrillic => &Self::Line(560, 197),
            Script::Hebrew => &Self::Line(334, 439),
            Script::Arabic => &Self::Line(238, 359),
            Script::Indic => &Self::Line(319, 362),
            Script::Thai => &Self::Line(325, 418),
            Script::Georgian => &Self::Line(591, 337),
            Script::Emoji => &Self::Line(0, 1_850),
            // Rules drawn with box characters.
            Script::Symbol if same => &Self::Line(1_000, 90),
            Script::Symbol => &Self::Line(-463, 845),
            _ => &Self::Line(0, 2_000),
        }
    }

    #[inline]
    pub(super) fn of(&self, len: usize) -> u64 {
        match self {
            Self::Table(short, more) => {
                let within = short.get(len.wrapping_sub(1));
                let beyond =
                    || u64::from(short[11]) + u64::from(*more) * (len as u64).saturating_sub(12);
                10 * within.map_or_else(beyond, |weight| u64::from(*weight))
            }
            Self::Line(base, slope) => {
                let weight = base.saturating_add(slope.saturating_mul(len as i64));
                weight.max(MILLI as i64) as u64
            }
        }
    }
}

impl Script {
    /// Returns `true` if the script consists of letters, after which a word can continue.
    pub(super) fn is_letters(self) -> bool {
        !matches!(self, Self::Emoji | Self::Symbol | Self::Other)
    }
}

/// Returns the script of a character above ASCII.
#[inline]
pub(super) fn script(c: char) -> Script {
    match c {
        '\u{4E00}'..='\u{9FFF}' => Script::Han,
        '\u{3041}'..='\u{309F}' => Script::Hiragana,
        '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}' => {
            Script::Katakana
        }
        '\u{AC00}'..='\u{D7A3}' | '\u{1100}'..='\u{11FF}' => Script::Hangul,
        '\u{3005}'..='\u{3007}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Script::Han,
        '\u{D7}' | '\u{F7}' | '\u{80}'..='\u{BF}' => Script::Symbol,
        '\u{C0}'..='\u{2AF}' | '\u{300}'..='\u{36F}' | '\u{1E00}'..='\u{1EFF}' => Script::Latin,
        '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Script::Greek,
        '\u{400}'..='\u{52F}' => Script::Cyrillic,
        '\u{590}'..='\u{5FF}' => Script::Hebrew,
        '\u{600}'..='\u{6FF}'
        | '\u{750}'..='\u{77F}'
        | '\u{FB50}'..='\u{FDFF}'
        | '\u{FE70}'..='\u{FEFC}' => Script::Arabic,
        '\u{900}'..='\u{DFF}' => Script::Indic,
        '\u{E00}'..='\u{EFF}' => Script::Thai,
        '\u{10A0}'..='\u{10FF}' => Script::Georgian,
        // Includes the joiner and the selector that are part of emoji.
        '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{200D}' | '\u{FE0F}' => {
            Script::Emoji
        }
        '\u{2000}'..='\u{2BFF}'
        | '\u{3000}'..='\u{303F}'
        | '\u{30FB}'
        | '\u{FF01}'..='\u{FF65}' => Script::Symbol,
        _ => Script::Other,
    }
}

/// Returns `true` for common characters that only traditional Chinese (and in part Japanese) uses.
/// The list is long enough to distinguish traditional from simplified text.
#[rustfmt::skip]
pub(super) fn is_traditional(c: char) -> bool {
    matches!(
        c,
        '並' | '來' | '個' | '們' | '傳' | '內' | '則' | '動' | '務' | '問' | '啟' | '單' | '國' | '圖'
        | '執' | '夠' | '學' | '實' | '寫' | '將' | '對' | '庫' | '後' | '從' | '應' | '換' | '數' | '於'
        | '時' | '書' | '會' | '東' | '業' | '標' | '樣' | '機' | '檔' | '檢' | '權' | '準' | '無' | '現'
        | '環' | '當' | '發' | '種' | '節' | '約' | '級' | '終' | '組' | '結' | '給' | '統' | '經' | '維'
        | '網' | '線' | '總' | '續' | '義' | '聽' | '與' | '處' | '號' | '裝' | '裡' | '見' | '視' | '覺'
        | '計' | '訊' | '記' | '設' | '許' | '話' | '該' | '認' | '語' | '誤' | '說' | '課' | '調' | '請'
        | '論' | '識' | '議' | '讀' | '變' | '讓' | '買' | '費' | '資' | '車' | '軟' | '輯' | '輸' | '轉'
        | '這' | '連' | '進' | '運' | '過' | '達' | '遠' | '選' | '還' | '邊' | '邏' | '錄' | '長' | '門'
        | '開' | '間' | '關' | '電' | '頁' | '項' | '題' | '類' | '顯' | '風' | '馬' | '體' | '麼' | '點'
    )
}

const fn table(short: [u16; 12], more: u16) -> Weight {
    Weight::Table(short, more)
}
