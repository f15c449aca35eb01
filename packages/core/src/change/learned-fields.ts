import { host, within } from '../policy/functions.ts'
import { isObject } from '../util/json.ts'

/** What the calls of one tool had in one field of their input. */
interface Field {
  /** Calls that had it. */
  count: number
  readonly texts: Set<string>
  /** Whether each value was a list of texts. */
  readonly isList: boolean
  /** Whether some value is of no kind that a condition can be made of. */
  isOther: boolean
}

const MAX_TEXTS = 1000
const MAX_HOSTS = 32
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const REDACTED = /\[redacted:/

/** The hosts and paths in the inputs of learned calls, by field. */
export class LearnedFields {
  readonly #fields = new Map<string, Field>()
  #known = 0
  /** Calls whose input was not kept, or only in part. */
  unknown = 0

  /** `preview`: the beginning of an input, as its record has it. */
  note(preview: string | undefined): void {
    const input = readPreview(preview)
    if (!input) {
      this.unknown++
      return
    }
    this.#known++
    for (const [name, value] of Object.entries(input)) if (NAME.test(name)) this.#noteValue(name, value)
  }

  #noteValue(name: string, value: unknown): void {
    const isList = Array.isArray(value)
    const texts = isList ? value : [value]
    let field = this.#fields.get(name)
    if (!field) this.#fields.set(name, (field = { count: 0, texts: new Set(), isList, isOther: false }))
    field.count++
    if (isList !== field.isList || !texts.every((text) => typeof text === 'string')) field.isOther = true
    else for (const text of texts) field.texts.add(text)
    if (field.texts.size > MAX_TEXTS) field.isOther = true
  }

  /** Returns the condition that all inputs were under: exact hosts, and no folder above the one that all paths have in common. */
  condition(): string | undefined {
    const parts = [...this.#fields]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, field]) => {
        const test = testOf(field)
        if (test === undefined) return []
        const path = `input.${name}`
        const holds = field.isList ? `${path}.all(one, ${test('one')})` : test(path)
        return [field.count < this.#known ? `(!has(${path}) || ${holds})` : holds]
      })
    return parts.length === 0 ? undefined : parts.join(' && ')
  }
}

/** Returns the input of a record, if all of it is there. */
function readPreview(preview: string | undefined): object | undefined {
  if (preview === undefined || REDACTED.test(preview)) return undefined
  try {
    const input: unknown = JSON.parse(preview)
    return isObject(input) ? input : undefined
  } catch {
    return undefined
  }
}

/** Returns the test of a field's values, if all of them are URLs, or all of them paths. */
function testOf({ texts, isOther }: Field): ((value: string) => string) | undefined {
  if (isOther || texts.size === 0) return undefined
  const all = [...texts]
  if (all.every((text) => /^https?:\/\//i.test(text))) return hostsTest(all)
  return all.every((text) => text.startsWith('/') && !/[\u0000-\u001f]/.test(text)) ? pathsTest(all) : undefined
}

function hostsTest(urls: readonly string[]): ((value: string) => string) | undefined {
  try {
    const hosts = [...new Set(urls.map(host))].toSorted()
    return hosts.length > MAX_HOSTS ? undefined : (value) => `host(${value}) in [${hosts.map(celText).join(', ')}]`
  } catch {
    return undefined
  }
}

function pathsTest(paths: readonly string[]): ((value: string) => string) | undefined {
  const split = paths.map((path) =>
    path
      .split('/')
      .slice(1)
      .filter((part, i, all) => part !== '' || i < all.length - 1),
  )
  // A path that goes up names another folder than it is written in.
  if (split.some((parts) => parts.some((part) => part === '..' || part === '.' || part === ''))) return undefined
  const [first = [], ...others] = split
  const common = first.findIndex((part, i) => others.some((parts) => parts[i] !== part))
  /** Of a path with odd characters nobody knows which file readers take it for. */
  const isBelowAll = (roots: readonly string[]) => {
    try {
      return paths.every((path) => roots.some((one) => within(path, one)))
    } catch {
      return false
    }
  }
  const root = `/${first.slice(0, common === -1 ? first.length : common).join('/')}`
  if (root !== '/' && isBelowAll([root])) return (value) => `within(${value}, ${celText(root)})`
  // Nothing but / is above all, so each folder of the first level counts for itself.
  const roots = [...new Set(split.map(([top = '']) => `/${top}`))].toSorted()
  if (root !== '/' || roots.length > MAX_HOSTS || roots.includes('/') || !isBelowAll(roots)) return undefined
  return (value) => `(${roots.map((one) => `within(${value}, ${celText(one)})`).join(' || ')})`
}

/** JSON escapes what CEL does; `$` begins a variable in a configuration. */
function celText(text: string): string {
  return JSON.stringify(text)
}
