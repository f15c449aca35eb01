import { formatCodePoint } from '@toolgate/values'
/** The kind of a suspicious character. */
export type CharacterCode = 'tag_characters' | 'bidi_control' | 'invisible' | 'private_use' | 'control_character'

/** Text with only these characters has no findings. */
const PLAIN = /^[\x20-\x7e\t\n\r]*$/

/** All characters that need a check: invisible, reordering and unassigned ones. */
const SUSPECT = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Co}\p{Noncharacter_Code_Point}\u2800]/gu

const BLANK = /[\t\n\r]/
const TAG = /[\u{e0000}-\u{e007f}]/u
const BIDI_MARK = /[\u061c\u200e\u200f]/
const BIDI_ISOLATE = /[\u2066-\u2069]/
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/
const CONTROL = /[\p{Cc}\p{Noncharacter_Code_Point}\ufff9-\ufffb]/u
const PRIVATE = /\p{Co}/u
/** Format characters that are visible all the same: Arabic, Syriac, Kaithi, Egyptian. */
const DRAWN_FORMAT = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1343f}]/u

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Samaritan}\p{Script=Mandaic}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}]/u

/** Flags of England, Scotland and Wales: the only tag sequences that Unicode recommends for interchange (UTS #51). */
const FLAG =
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/gu

/** The most ideographic variation sequences that real text needs. */
const MAX_VARIATIONS = 16

/**
 * Contexts in which an invisible character is needed: `before` matches the text up to it, `after` the text that follows.
 * UTS #51 for emoji, RFC 5892 appendix A and Unicode 16 chapters 9, 12, 13 and 23 for scripts.
 */
const NEEDED: readonly { readonly character: RegExp; readonly before: RegExp; readonly after: RegExp }[] = [
  // Joins and non-joins of letters: Persian, Urdu, Hindi, Bengali, Sinhala …
  {
    character: /[\u200c\u200d]/,
    before:
      /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Phags_Pa}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{M}]$/u,
    after: /^(?!\p{Default_Ignorable_Code_Point})/u,
  },
  // Emoji made of several characters: a family, a profession, a flag.
  {
    character: /\u200d/,
    before: /\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?$/u,
    after: /^\p{Extended_Pictographic}/u,
  },
  // Selects emoji or text style; digits only in keycaps.
  { character: /[\ufe0e\ufe0f]/, before: /(?![0-9#*])\p{Emoji}$/u, after: /^(?![\ufe00-\ufe0f])/ },
  { character: /\ufe0f/, before: /[0-9#*]$/, after: /^\u20e3/ },
  // Variants of ideographs, of mathematical signs, and of East Asian punctuation.
  {
    character: /[\ufe00-\ufe02\u{e0100}-\u{e01ef}]/u,
    before: /\p{Unified_Ideograph}$/u,
    after: /^(?![\ufe00-\ufe0f\u{e0100}-\u{e01ef}])/u,
  },
  {
    character: /[\ufe00\ufe01]/,
    before: /[\p{Sm}\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f0]$/u,
    after: /^(?![\ufe00-\ufe0f])/,
  },
  { character: /[\u180b-\u180f]/, before: /\p{Script=Mongolian}$/u, after: /^(?![\u180b-\u180f])/ },
  // Line breaks in scripts without spaces between words.
  {
    character: /[\u200b\u2060]/,
    before: /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]$/u,
    after: /^(?!\p{Default_Ignorable_Code_Point})/u,
  },
  // Old Korean, and a mark that keeps marks apart.
  { character: /[\u115f\u1160]/, before: /(?:^|[^\u115f\u1160])$/, after: /^[\u1100-\u11ff]/ },
  { character: /\u034f/, before: /\p{M}$/u, after: /^\p{M}/u },
  { character: /\u2800/, before: /[\u2801-\u28ff]\s?$/, after: /^/ },
]

/** Finds characters that are invisible or make a text look different, unless the text needs them. */
export function findCharacters(
  text: string,
): readonly { readonly code: CharacterCode; readonly characters: readonly string[] }[] {
  if (PLAIN.test(text)) return []
  const found = new Map<CharacterCode, string[]>()
  const flags = new Set([...text.matchAll(FLAG)].flatMap(({ 0: flag, index }) => indexesOf(flag, index)))
  const isRightToLeft = RIGHT_TO_LEFT.test(text)
  const isolatesMatch = isRightToLeft && areBalanced(text)
  let variations = 0
  for (const { 0: character, index } of text.matchAll(SUSPECT)) {
    if (BLANK.test(character) || flags.has(index) || DRAWN_FORMAT.test(character)) continue
    if (isRightToLeft && BIDI_MARK.test(character)) continue
    if (isolatesMatch && BIDI_ISOLATE.test(character)) continue
    const code = codeOf(character)
    if (code === 'invisible' && isNeeded(text, index, character)) {
      if (character < '\u{e0100}' || ++variations <= MAX_VARIATIONS) continue
    }
    const others = found.get(code)
    if (others) others.push(character)
    else found.set(code, [character])
  }
  return [...found].map(([code, characters]) => ({ code, characters }))
}

/** Returns the text that tag characters encode: each stands for an ASCII character. */
export function readTags(characters: readonly string[]): string {
  const codes = characters.map((character) => (character.codePointAt(0) as number) - 0xe0000)
  return String.fromCharCode(...codes.filter((code) => code >= 0x20 && code < 0x7f))
}

function codeOf(character: string): CharacterCode {
  if (TAG.test(character)) return 'tag_characters'
  if (BIDI.test(character)) return 'bidi_control'
  if (PRIVATE.test(character)) return 'private_use'
  return CONTROL.test(character) ? 'control_character' : 'invisible'
}

function isNeeded(text: string, index: number, character: string): boolean {
  const before = text.slice(Math.max(0, index - 8), index)
  const after = text.slice(index + character.length, index + character.length + 4)
  return NEEDED.some((need) => need.character.test(character) && need.before.test(before) && need.after.test(after))
}

function indexesOf(flag: string, start: number): number[] {
  return Array.from({ length: flag.length }, (_, i) => start + i)
}

/** Returns whether isolates are balanced. Others affect text beyond their own. */
function areBalanced(text: string): boolean {
  let open = 0
  for (const [character] of text.matchAll(/[\u2066-\u2069]/g)) {
    open += character === '\u2069' ? -1 : 1
    if (open < 0) return false
  }
  return open === 0
}

/** Characters that a person does not see, or mistakes for others. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029\u2800]/u
const SPACED = /[\t\n\r]/

/** Returns a text with invisible characters spelt out: `a⟨U+200B⟩b`. Line breaks and tabs stay. */
export function spellOut(text: string): string {
  if (/^[\x20-\x7e\t\n\r]*$/.test(text)) return text
  let spelt = ''
  for (const character of text) {
    spelt += UNSEEN.test(character) && !SPACED.test(character) ? `⟨${formatCodePoint(character)}⟩` : character
  }
  return spelt
}
