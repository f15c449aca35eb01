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
