/** Longer words are cut, so that an encoded picture does not fill the index. */
const MAX_TERM_LENGTH = 64

/**
 * Returns the words of a text in lower case, in order.
 *
 * Splits at every character that is neither a letter nor a digit, between letters and digits, and inside camelCase,
 * where the whole is also a word: `GitHub` becomes `git`, `hub`, `github`. Case and diacritics are folded (Unicode NFKD).
 * Scripts without spaces between words, and Hangul, become overlapping pairs of characters (Lucene's "CJK bigram").
 * Pairs need no dictionary, so every replica splits in the same way.
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

/** Returns a text as one word, so that `readfile` and `read file` find `read_file`. */
export function joinWords(text: string): string {
  return foldCase((isAscii(text) ? text : foldMarks(text)).replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ''))
}

/** Returns whether the text ends within a word, which may be unfinished. */
export function endsInWord(text: string): boolean {
  return /[\p{L}\p{M}\p{N}]$/u.test(text)
}

const ASCII_CHUNKS = /[A-Za-z0-9]+/g
/** The group matches letters of scripts without spaces between words. */
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

/** Removes diacritics of Latin letters. Marks of other scripts stay: in Devanagari, Thai or kana they make another letter. */
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

/** Folds case through upper case, so that `ß` becomes `ss` and a final sigma a sigma. */
function foldCase(word: string): string {
  return word.slice(0, MAX_TERM_LENGTH).toUpperCase().toLowerCase().replaceAll('ς', 'σ')
}

function addPairs(words: string[], run: string): void {
  const characters = Array.from(run)
  if (characters.length === 1) words.push(run)
  for (let i = 1; i < characters.length; i++) words.push(`${characters[i - 1]}${characters[i]}`)
}

/**
 * Returns the stem of an English word: without plural, `-ing`, `-ed` and a final `e`.
 *
 * Other endings stay: `-er` and `-ation` make other words. Words with other letters are returned as they are.
 *
 * @example
 * ['create', 'creates', 'created', 'creating'].map(stem) // 'creat', four times
 */
export function stem(word: string): string {
  // Most words have another ending, and an index stems hundreds of thousands.
  if (word.length < 4 || !ENDINGS.has(word.charCodeAt(word.length - 1)) || !ENGLISH.test(word)) return word
  const singular = withoutPlural(word)
  const base = VERB_FORM.exec(singular)?.[1]?.replace(DOUBLED, '$1') ?? singular
  return base.length > 3 && base.endsWith('e') ? base.slice(0, -1) : base
}

const ENDINGS: ReadonlySet<number> = new Set(Array.from('sgde', (letter) => letter.charCodeAt(0)))
const ENGLISH = /^[a-z]+$/
/** At least three letters must remain, with a vowel: `string` and `speed` are not verb forms. */
const VERB_FORM = /^(?=.*[aeiouy].*(?:ing|ed)$)(.{3,})(?:ing|(?<!e)ed)$/
/** `stopping` becomes `stop`; `calling` and `missing` do not become `cal` and `mis`. */
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
