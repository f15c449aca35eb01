/**
 * Returns a text without accents and other marks, and with wide and ligated letters as plain ones (Unicode NFKD).
 *
 * Words are found in a text if both are folded: `パスワード` loses its marks in either.
 */
export function foldMarks(text: string): string {
  if (ASCII.test(text)) return text
  return text
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cf}]/gu, '')
    .normalize('NFC')
}

const ASCII = /^\p{ASCII}*$/u

/** Joins an abbreviation that is written with signs between its letters: `P.I.N.` and `c_v_v` become `PIN` and `cvv`. */
export function joinLetters(text: string): string {
  return text.replaceAll(ABBREVIATION, (letters) => letters.replaceAll(/[^\p{L}]/gu, ''))
}

const ABBREVIATION = /(?<![\p{L}\p{N}])\p{L}(?:[.·_-]\p{L}){1,11}(?![\p{L}\p{N}])/gu
