import { host, within } from '@toolgate/core/policy'
import type { AuditRecord } from '@toolgate/core/audit'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { factsIn } from './recorded-facts.ts'

/** The values of one input field in the calls of one tool. */
interface LearnedField {
  /** The number of calls with the field. */
  count: number
  /** The number of partly known calls in which the field was known to be present or absent. */
  knownInPart: number
  readonly texts: Set<string>
  /** Whether each value was a list of texts. Absent: no call had it. */
  isList: boolean | undefined
  /** Whether some value has a type that no condition is suggested for. */
  isOther: boolean
}

const MAX_TEXTS = 1000
const MAX_HOSTS = 32
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const REDACTED = /\[redacted:/

/** The hosts and paths in the inputs of learned calls, by field. */
export class LearnedFields {
  readonly #fields = new Map<string, LearnedField>()
  /** The number of calls with a wholly known input. */
  #whole = 0
  /** The number of calls with a partly known input, by the names of the known fields. */
  readonly #inPart = new Map<string, number>()

  /** Reads the input of a record: the sealed input, or the preview if it is complete, or the recorded facts. */
  note(record: Pick<AuditRecord, 'input_preview' | 'facts'>, sealed?: unknown): void {
    const input = isObject(sealed) ? sealed : readPreview(record.input_preview)
    if (!input) return this.#noteFacts(record)
    this.#whole++
    for (const [name, value] of Object.entries(input)) if (NAME.test(name)) this.#noteValue(this.#of(name), value)
  }

  #noteFacts(record: Pick<AuditRecord, 'facts'>): void {
    // For texts that rules only compare, the audit has a hash.
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

  #of(name: string): LearnedField {
    let field = this.#fields.get(name)
    if (!field) {
      field = { count: 0, knownInPart: 0, texts: new Set(), isList: undefined, isOther: false }
      this.#fields.set(name, field)
    }
    return field
  }

  #noteValue(field: LearnedField, value: unknown): void {
    const isList = Array.isArray(value)
    const texts = isList ? value : [value]
    field.isList ??= isList
    field.count++
    if (isList !== field.isList || !texts.every((text) => typeof text === 'string')) field.isOther = true
    else for (const text of texts) field.texts.add(text)
    if (field.texts.size > MAX_TEXTS) field.isOther = true
  }

  /** Returns a condition that all inputs met: exact hosts, and the deepest folder that all paths share. */
  condition(): string | undefined {
    const parts = this.#tested().map(({ name, field, test }) => {
      const path = `input.${name}`
      const holds = field.isList ? `${path}.all(one, ${test('one')})` : test(path)
      return field.count < this.#whole + field.knownInPart ? `(!has(${path}) || (${holds}))` : holds
    })
    return parts.length === 0 ? undefined : parts.join(' && ')
  }

  /**
   * Returns how many calls the condition may refuse because a field that it reads was not recorded. Without a condition,
   * returns the number of calls with an unknown input.
   */
  unknown(): number {
    const names = this.#tested().map(({ name }) => name)
    return [...this.#inPart].reduce((sum, [known, calls]) => {
      const parts = new Set(known.split(' '))
      return names.length > 0 && names.every((name) => parts.has(name)) ? sum : sum + calls
    }, 0)
  }

  /** Returns the fields with a condition, by name. */
  #tested(): readonly {
    readonly name: string
    readonly field: LearnedField
    readonly test: (value: string) => string
  }[] {
    return [...this.#fields]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, field]) => {
        const test = testOf(field)
        return test === undefined ? [] : [{ name, field, test }]
      })
  }
}

/** Returns the input of a record, if the preview is complete. */
function readPreview(preview: string | undefined): object | undefined {
  if (preview === undefined || REDACTED.test(preview)) return undefined
  try {
    const input: unknown = readOwnJson(preview, 'exact')
    return isObject(input) ? input : undefined
  } catch {
    return undefined
  }
}

/** Returns the test for a field whose values are all URLs or all paths, if it is such a field. */
function testOf({ texts, isOther }: LearnedField): ((value: string) => string) | undefined {
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
  // A path with `..` leads to another folder than its text shows.
  if (split.some((parts) => parts.some((part) => part === '..' || part === '.' || part === ''))) return undefined
  const [first = [], ...others] = split
  const common = first.findIndex((part, i) => others.some((parts) => parts[i] !== part))
  /** Readers may interpret a path with unusual characters differently. */
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
  // The only common folder is /, so each top-level folder is listed.
  const roots = [...new Set(split.map(([top = '']) => `/${top}`))].toSorted()
  if (root !== '/' || roots.length > MAX_HOSTS || roots.includes('/') || !isBelowAll(roots)) return undefined
  return (value) => `${isAbsolute(value)} && (${roots.map((one) => isBelow(value, one)).join(' || ')})`
}

/** JSON and CEL escape the same characters; `$` starts a variable in a configuration. */
function celText(text: string): string {
  return JSON.stringify(text)
}
