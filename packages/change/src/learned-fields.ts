import { host, within } from '@toolgate/core/policy'
import type { AuditRecord } from '@toolgate/core/audit'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { factsIn } from './recorded-facts.ts'

/** What the calls of one tool had in one field of their input. */
interface Field {
  /** Calls that had it. */
  count: number
  /** Calls of whose input only a part is known, but whether they had it. */
  knownInPart: number
  readonly texts: Set<string>
  /** Whether each value was a list of texts. Absent: no call had it. */
  isList: boolean | undefined
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
  /** Calls whose whole input is known. */
  #whole = 0
  /** Calls of whose input only some fields are known, by the names of these. */
  readonly #inPart = new Map<string, number>()

  /** Takes in the input of a record: what was sealed of it, else its preview if that is whole, else the facts that rules read of it. */
  note(record: Pick<AuditRecord, 'input_preview' | 'facts'>, sealed?: unknown): void {
    const input = isObject(sealed) ? sealed : readPreview(record.input_preview)
    if (!input) return this.#noteFacts(record)
    this.#whole++
    for (const [name, value] of Object.entries(input)) if (NAME.test(name)) this.#noteValue(this.#of(name), value)
  }

  #noteFacts(record: Pick<AuditRecord, 'facts'>): void {
    // Of a text that is only compared, the hash was kept.
    const known = Object.entries(factsIn(record)?.input ?? {}).filter(
      ([name, fact]) => NAME.test(name) && typeof fact !== 'string',
    )
    for (const [name, fact] of known) {
      const field = this.#of(name)
      field.knownInPart++
      if (fact.length > 0) this.#noteValue(field, fact[0])
    }
    const names = known.map(([name]) => name).join(' ')
    this.#inPart.set(names, (this.#inPart.get(names) ?? 0) + 1)
  }

  #of(name: string): Field {
    let field = this.#fields.get(name)
    if (!field) {
      field = { count: 0, knownInPart: 0, texts: new Set(), isList: undefined, isOther: false }
      this.#fields.set(name, field)
    }
    return field
  }

  #noteValue(field: Field, value: unknown): void {
    const isList = Array.isArray(value)
    const texts = isList ? value : [value]
    field.isList ??= isList
    field.count++
    if (isList !== field.isList || !texts.every((text) => typeof text === 'string')) field.isOther = true
    else for (const text of texts) field.texts.add(text)
    if (field.texts.size > MAX_TEXTS) field.isOther = true
  }

  /** Returns the condition that all inputs were under: exact hosts, and no folder above the one that all paths have in common. */
  condition(): string | undefined {
    const parts = this.#tested().map(({ name, field, test }) => {
      const path = `input.${name}`
      const holds = field.isList ? `${path}.all(one, ${test('one')})` : test(path)
      return field.count < this.#whole + field.knownInPart ? `(!has(${path}) || (${holds}))` : holds
    })
    return parts.length === 0 ? undefined : parts.join(' && ')
  }

  /** Returns how many calls the condition may refuse, as a field that it reads was not kept; without one, the calls whose input is not known. */
  unknown(): number {
    const names = this.#tested().map(({ name }) => name)
    return [...this.#inPart].reduce((sum, [known, calls]) => {
      const parts = new Set(known.split(' '))
      return names.length > 0 && names.every((name) => parts.has(name)) ? sum : sum + calls
    }, 0)
  }

  /** Returns the fields with a condition, by name. */
  #tested(): readonly { readonly name: string; readonly field: Field; readonly test: (value: string) => string }[] {
    return [...this.#fields]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, field]) => {
        const test = testOf(field)
        return test === undefined ? [] : [{ name, field, test }]
      })
  }
}

/** Returns the input of a record, if all of it is there. */
function readPreview(preview: string | undefined): object | undefined {
  if (preview === undefined || REDACTED.test(preview)) return undefined
  try {
    const input: unknown = readOwnJson(preview, 'exact')
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
  // `within` takes a relative path from its root; a server may take it from elsewhere.
  const isBelow = (value: string, one: string) => `within(${value}, ${celText(one)})`
  const isAbsolute = (value: string) => `${value}.startsWith("/")`
  if (root !== '/' && isBelowAll([root])) return (value) => `${isAbsolute(value)} && ${isBelow(value, root)}`
  // Nothing but / is above all, so each folder of the first level counts for itself.
  const roots = [...new Set(split.map(([top = '']) => `/${top}`))].toSorted()
  if (root !== '/' || roots.length > MAX_HOSTS || roots.includes('/') || !isBelowAll(roots)) return undefined
  return (value) => `${isAbsolute(value)} && (${roots.map((one) => isBelow(value, one)).join(' || ')})`
}

/** JSON escapes what CEL does; `$` begins a variable in a configuration. */
function celText(text: string): string {
  return JSON.stringify(text)
}
