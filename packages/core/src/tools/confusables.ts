import table from 'unhomoglyph/data.json' with { type: 'json' }
import { formatNonAscii } from '@toolgate/values'

/** Ids that look alike, or one id that mixes scripts. */
interface Confusion {
  readonly ids: readonly string[]
  /** For people. */
  readonly text: string
}

/**
 * Finds ids that look alike - `read` with a Cyrillic `а`, `list1` and `listl` - by their skeletons (UTS #39 §4), and
 * ids with a part that mixes scripts (§5.1).
 */
export function findConfusions(ids: readonly string[]): readonly Confusion[] {
  const alike = new Map<string, string[]>()
  for (const id of ids) {
    const key = skeleton(id)
    const others = alike.get(key)
    if (others) others.push(id)
    else alike.set(key, [id])
  }
  const lookalikes = [...alike.values()].flatMap((group) =>
    group.length > 1 ? [{ ids: group, text: `${group.map(spelled).join(' and ')} look alike` }] : [],
  )
  const mixed = ids.flatMap((id) => {
    const scripts = id
      .split(':')
      .map(scriptsMixedIn)
      .find((found) => found.length > 1)
    return scripts ? [{ ids: [id], text: `${spelled(id)} mixes ${scripts.join(' and ')} letters` }] : []
  })
  return [...lookalikes, ...mixed]
}

/** Created at first use, because only checks of names read it. */
let prototypes: ReadonlyMap<string, string> | undefined

/**
 * Returns the skeleton of a text. Texts that look alike have equal skeletons. For comparison only, not for display.
 *
 * It uses NFKD where UTS #39 uses NFD, because the table does not cover wide and mathematical letters, and tool ids are not
 * normalised.
 */
export function skeleton(text: string): string {
  prototypes ??= new Map(Object.entries<string>(table))
  let bones = ''
  for (const character of text.normalize('NFKD').replaceAll(INVISIBLE, '')) {
    bones += prototypes.get(character) ?? character
  }
  return bones.normalize('NFD')
}

const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu

/** The scripts of UAX #31 table 5, and two whose letters look Latin. */
const SCRIPTS =
  'Latin Han Hiragana Katakana Bopomofo Hangul Cyrillic Greek Arabic Armenian Bengali Devanagari Ethiopic Georgian Gujarati Gurmukhi Hebrew Kannada Khmer Lao Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan Cherokee Coptic'
    .split(' ')
    .map((name) => ({ name, has: new RegExp(`\\p{Script_Extensions=${name}}`, 'u') }))
const COMMON = /[\p{Script=Common}\p{Script=Inherited}]/u
/** Chinese, Japanese and Korean texts mix these scripts, also with Latin. */
const EAST_ASIAN: ReadonlySet<string> = new Set(['Latin', 'Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul'])

/** Returns the scripts that a text mixes; at most one if they belong together. */
function scriptsMixedIn(text: string): readonly string[] {
  if (/^[\x20-\x7e]*$/.test(text)) return []
  const letters = [...new Set(text)].filter((character) => !COMMON.test(character)).map(scriptsOf)
  const shared = SCRIPTS.some(({ name }) => letters.every((scripts) => scripts.includes(name)))
  if (shared || letters.every((scripts) => scripts.some((name) => EAST_ASIAN.has(name)))) return []
  return [...new Set(letters.map((scripts) => scripts[0] ?? 'other'))]
}

function scriptsOf(character: string): readonly string[] {
  const names = SCRIPTS.filter(({ has }) => has.test(character)).map(({ name }) => name)
  return names.length > 0 ? names : ['other']
}

/** Returns an id with its non-ASCII characters as code points, so that the difference is visible. */
function spelled(id: string): string {
  const codes = formatNonAscii(id)
  return codes.length === 0 ? `"${id}"` : `"${id}" (with ${codes.join(', ')})`
}
