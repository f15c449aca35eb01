/** A longer word is cut: what is no word, such as an encoded picture, must not fill the index. */
const MAX_TERM_LENGTH = 64

/**
 * Gives the words of a text in lower case, in their order.
 *
 * Splits at whatever is neither letter nor digit, between letters and digits, and inside camelCase, where the
 * whole is a word too: `GitHub` gives `git`, `hub`, `github`. Case and diacritics are folded (Unicode NFKD).
 * Scripts that put no spaces between words, and Hangul, give overlapping pairs of characters, as is usual for
 * them (the "CJK bigram" of Lucene): pairs need no dictionary, so every replica splits alike.
 *
 * @example
 * tokenize('readFile v2') // ['read', 'file', 'readfile', 'v', '2', 'v2']
 */
export function tokenize(text: string): string[] {
  const words: string[] = []
  if (isAscii(text)) {
    for (const chunk of text.match(ASCII_CHUNKS) ?? []) addSpaced(words, chunk)
    return words
  }
  for (const [chunk, unspaced] of foldMarks(text).matchAll(CHUNKS)) {
    if (unspaced === undefined) addSpaced(words, chunk)
    else addPairs(words, unspaced)
  }
  return words
}

/** Gives a text as one word: what is asked as `readfile` or `read file` is found as `read_file`. */
export function joinWords(text: string): string {
  return foldCase((isAscii(text) ? text : foldMarks(text)).replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ''))
}

/** Whether the text ends within a word, which its writer may not have finished. */
export function endsInWord(text: string): boolean {
  return /[\p{L}\p{M}\p{N}]$/u.test(text)
}

const ASCII_CHUNKS = /[A-Za-z0-9]+/g
/** In the group: letters of scripts without spaces between words. */
const CHUNKS =
  /([[\p{L}\p{M}\p{N}]&&[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]]+)|[[\p{L}\p{M}\p{N}]--[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]]+/gv
/** Acronyms (`URLs` is one), words, numbers, and letters that have no case. */
const PARTS =
  /\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?!\p{Ll})|[\p{Lu}\p{Lt}]?[\p{Ll}\p{M}]+|\p{N}+|[\p{Lo}\p{Lm}\p{Lt}\p{M}]+/gu
const ONE_PART = /^(?:[a-z]+|[0-9]+)$/

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

/** Marks of other scripts stay: in Devanagari, Thai or kana they make another letter. */
function foldMarks(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f\p{Default_Ignorable_Code_Point}]/gu, '')
    .normalize('NFC')
}

function addSpaced(words: string[], chunk: string): void {
  if (ONE_PART.test(chunk)) {
    words.push(chunk.slice(0, MAX_TERM_LENGTH))
    return
  }
  const parts = chunk.match(PARTS) ?? []
  for (const part of parts) words.push(foldCase(part))
  if (parts.length > 1) words.push(foldCase(chunk))
}

/** Through upper case, so that `ß` is `ss` and a final sigma is a sigma. */
function foldCase(word: string): string {
  return word.slice(0, MAX_TERM_LENGTH).toUpperCase().toLowerCase().replaceAll('ς', 'σ')
}

function addPairs(words: string[], run: string): void {
  const characters = Array.from(run)
  if (characters.length === 1) words.push(run)
  for (let i = 1; i < characters.length; i++) words.push(`${characters[i - 1]}${characters[i]}`)
}

/**
 * Gives what the forms of an English word have in common: without plural, `-ing`, `-ed` and a final `e`.
 *
 * It knows no other endings: `-er` and `-ation` make other words. Words of other letters pass as they are.
 *
 * @example
 * ['create', 'creates', 'created', 'creating'].map(stem) // 'creat', four times
 */
export function stem(word: string): string {
  // Most words end otherwise, and an index asks this of hundreds of thousands.
  if (word.length < 4 || !ENDINGS.has(word.charCodeAt(word.length - 1)) || !ENGLISH.test(word)) return word
  const singular = withoutPlural(word)
  const base = VERB_FORM.exec(singular)?.[1]?.replace(DOUBLED, '$1') ?? singular
  return base.length > 3 && base.endsWith('e') ? base.slice(0, -1) : base
}

const ENDINGS: ReadonlySet<number> = new Set(Array.from('sgde', (letter) => letter.charCodeAt(0)))
const ENGLISH = /^[a-z]+$/
/** At least three letters must be left, a vowel among them: `string` and `speed` are no forms of anything. */
const VERB_FORM = /^(?=.*[aeiouy].*(?:ing|ed)$)(.{3,})(?:ing|(?<!e)ed)$/
/** `stopping` is of `stop`; `calling` and `missing` are not of `cal` and `mis`. */
const DOUBLED = /([bdgmnprt])\1$/
const PLURALS: readonly (readonly [ending: RegExp, singular: string])[] = [
  [/(?<=..)ies$/, 'y'],
  [/(?<=ss|sh|ch|x|zz)es$/, ''],
  [/(?<=..[^aeisu]|..[ae])s$/, ''],
]

function withoutPlural(word: string): string {
  if (!word.endsWith('s')) return word
  const rule = PLURALS.find(([ending]) => ending.test(word))
  return rule ? word.replace(...rule) : word
}
