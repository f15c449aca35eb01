/** What a person does not see, or sees as something else. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029\u2800]/u
const SPACED = /[\t\n\r]/

/** Gives a text with everything that is not seen spelt out: `a⟨U+200B⟩b`. Line breaks and tabs stay. */
export function spellOut(text: string): string {
  if (/^[\x20-\x7e\t\n\r]*$/.test(text)) return text
  let spelt = ''
  for (const character of text) {
    spelt += UNSEEN.test(character) && !SPACED.test(character) ? `⟨${codePoint(character)}⟩` : character
  }
  return spelt
}

/** Gives `U+` and at least four hexadecimal digits. */
export function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
}
