import { ConfigError } from '../errors.ts'

/** Returns the entries of a text with commas between them. */
export function splitEntries(text: string): readonly string[] {
  return text.split(',').map((entry) => entry.trim())
}

/** The characters of tool ids in real catalogs. Others, such as `;` and quotes, separate or wrap entries by mistake. */
const LISTED = /^[\p{L}\p{N}\p{M}_.*:@$/+~#-]+$/u

/**
 * Checks that a selector inside a list of text is one entry.
 *
 * `a:1/60;b:1/60` would otherwise be one limit for a tool named `a:1/60;b`, which limits nothing. A selector with other
 * characters can be given as an object, in code or in a file.
 *
 * @throws {ConfigError} naming the entry
 */
export function checkEntry(path: string, entry: string, selector: string): void {
  // The selector itself says what is wrong with spaces.
  if (/\s/.test(selector) || (LISTED.test(selector) && !/:\d+\/\d/.test(selector))) return
  throw new ConfigError(
    path,
    `${JSON.stringify(entry)} is not one entry: entries have commas between them, and a selector holds letters, digits and _ . * : @ $ / + ~ # -`,
    { code: 'selector_invalid' },
  )
}
