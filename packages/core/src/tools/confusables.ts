import table from 'unhomoglyph/data.json' with { type: 'json' }
import { formatNonAscii } from '../util/text.ts'

/** Ids that a person takes for one another, or one that mixes scripts as no word does. */
export interface Confusion {
  readonly ids: readonly string[]
  /** For people. */
  readonly text: string
}

/**
 * Finds ids that look alike - `read` with a Cyrillic `а`, `list1` and `listl` - by their skeletons (UTS #39 §4), and
 * ids of which one part mixes scripts (§5.1).
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

/** Made when it is first needed: only a check of names reads it. */
let prototypes: ReadonlyMap<string, string> | undefined

/**
 * Gives the skeleton of a text: equal for texts that look alike. For comparing only, never for showing.
 *
 * Wide and mathematical letters are taken apart too (NFKD, where UTS #39 has NFD): its table leaves them to a
 * normalisation that tool ids do not have.
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

/** The scripts of UAX #31 table 5, and two whose letters are taken for Latin ones. */
const SCRIPTS =
  'Latin Han Hiragana Katakana Bopomofo Hangul Cyrillic Greek Arabic Armenian Bengali Devanagari Ethiopic Georgian Gujarati Gurmukhi Hebrew Kannada Khmer Lao Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan Cherokee Coptic'
    .split(' ')
    .map((name) => ({ name, has: new RegExp(`\\p{Script_Extensions=${name}}`, 'u') }))
const COMMON = /[\p{Script=Common}\p{Script=Inherited}]/u
/** Chinese, Japanese and Korean texts have several of these, and Latin words among them. */
const EAST_ASIAN: ReadonlySet<string> = new Set(['Latin', 'Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul'])

/** Gives the scripts of a text that do not go together; none or one where they do. */
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

/** Shows an id with what is not ASCII spelt out, so that the difference is seen. */
function spelled(id: string): string {
  const codes = formatNonAscii(id)
  return codes.length === 0 ? `"${id}"` : `"${id}" (with ${codes.join(', ')})`
}
