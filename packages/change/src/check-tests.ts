import { OUTCOMES } from '@toolgate/core/decide'
import { ConfigError, defineCaller } from '@toolgate/core'
import { describeUnknown, didYouMean, messageOf, type Shape } from '@toolgate/values'
import { isItemId } from '@toolgate/core/tools'
import { isObject, type JsonObject } from '@toolgate/values/json'
import {
  EARLIER_CALL,
  EXPECTED,
  GROUP_STATE,
  OF_CALLS,
  parseAgo,
  type PolicyTest,
  STATED_HISTORY,
  TEST,
} from './policy-test.ts'

/** An invalid part of a test. */
export interface TestProblem {
  /** The path from the list of tests: `[2, 'expect', 'call', 'files:wirte_file']`. */
  readonly path: readonly (string | number)[]
  readonly message: string
  /** Whether the key is wrong, rather than its value. */
  readonly isKey: boolean
}

/** The names that tests may use. */
export interface Known {
  readonly tools: readonly string[]
  /** Servers that may have resources that they do not list. */
  readonly servers: ReadonlySet<string>
  readonly callers: readonly string[]
  readonly groups: readonly string[]
  readonly apps: readonly string[]
  readonly limits: readonly string[]
  readonly labels: readonly string[]
  readonly codes: readonly string[]
}

/** Throws a problem. @throws {ConfigError} always */
export function toConfigError({ path, message }: TestProblem): ConfigError {
  const text = path.map((part) =>
    typeof part === 'number' ? `[${part}]` : /^\w+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`,
  )
  return new ConfigError(`tests${text.join('')}`, message)
}

/** Returns all unknown or invalid parts of tests. With a misspelt key, a test would check less than it says. */
export function findProblems(tests: readonly PolicyTest[], known: Known): readonly TestProblem[] {
  if (!Array.isArray(tests)) return [{ path: [], message: 'must be a list', isKey: false }]
  return tests.flatMap((test: unknown, i) => new TestCheck(known, [i]).check(test))
}

/** Returns all unknown or invalid parts of a stated history. Paths are relative to it. */
export function findHistoryProblems(
  history: unknown,
  known: Pick<Known, 'tools' | 'servers' | 'labels'>,
): readonly TestProblem[] {
  return new TestCheck({ callers: [], groups: [], apps: [], limits: [], codes: [], ...known }, []).checkHistory(
    history,
    [],
  )
}

type Path = TestProblem['path']

/** Collects the problems of one test. */
class TestCheck {
  readonly #known: Known
  readonly #root: Path
  readonly #problems: TestProblem[] = []

  constructor(known: Known, root: Path) {
    this.#known = known
    this.#root = root
  }

  check(test: unknown): readonly TestProblem[] {
    const given = this.#object([], test, TEST)
    if (!given) return this.#problems
    const { caller, app, at, availability, unlocked, history, used, expect } = given
    if (typeof given['shows'] !== 'string' || given['shows'] === '') this.#add(['shows'], 'must be a sentence')
    if (typeof caller === 'string') this.#name(['caller'], caller, this.#known.callers, 'caller')
    else if (caller !== undefined) this.#caller(caller)
    if (app !== undefined) this.#name(['app'], app, this.#known.apps, 'app')
    if (
      at !== undefined &&
      !(typeof at === 'string' && /^\d{4}-\d\d-\d\dT/.test(at) && Number.isFinite(Date.parse(at)))
    )
      this.#add(['at'], 'must be a time such as 2026-01-31T09:00:00Z')
    for (const name of this.#keys(['availability'], availability)) {
      this.#name(['availability', name], name, this.#known.groups, 'group', true)
      this.#groupState(['availability', name], (availability as JsonObject)[name])
    }
    for (const [i, by] of this.#list(['unlocked'], unlocked).entries()) this.#unlocking(['unlocked', i], by)
    for (const key of ['visibility', 'activeTools'] as const) this.#tools([key], given[key])
    if (history !== undefined) this.checkHistory(history, ['history'])
    for (const name of this.#keys(['used'], used)) this.#used(name, (used as JsonObject)[name])
    this.#expected(expect)
    return this.#problems
  }

  #expected(expect: unknown): void {
    const at = ['expect']
    const given = this.#object(at, expect, EXPECTED)
    if (!given) return
    if (Object.keys(given).length === 0) this.#add(at, 'a test must expect something')
    for (const key of ['visible', 'sees', 'hides'] as const) this.#tools([...at, key], given[key])
    for (const [i, notice] of this.#list([...at, 'notices'], given['notices']).entries())
      this.#text([...at, 'notices', i], notice)
    for (const key of OF_CALLS)
      for (const id of this.#keys([...at, key], given[key])) {
        const path = [...at, key, id]
        const value = (given[key] as JsonObject)[id]
        this.#tool(path, id, true)
        if (key === 'call') this.#name(path, value, OUTCOMES, 'outcome')
        else if (key !== 'reasons') this.#text(path, value)
        else
          for (const [i, code] of this.#list(path, value).entries())
            this.#name([...path, i], code, this.#known.codes, 'reason')
      }
  }

  checkHistory(history: unknown, path: Path): readonly TestProblem[] {
    const given = this.#object(path, history, STATED_HISTORY)
    if (!given) return this.#problems
    const { said, labels, calls, run, lost } = given
    const at = (key: string): Path => [...path, key]
    if (run === false && said !== undefined) this.#add(at('said'), 'is known of a run only, and "run" is false')
    if (typeof said !== 'string')
      for (const [i, text] of this.#list(at('said'), said).entries()) this.#text([...at('said'), i], text)
    for (const key of ['run', 'lost']) this.#flag(at(key), given[key] === undefined ? true : given[key])
    if (run === false && lost === true) this.#add(at('lost'), 'is known of a run only, and "run" is false')
    for (const [i, label] of this.#list(at('labels'), labels).entries())
      this.#name([...at('labels'), i], label, this.#known.labels, 'label')
    let before = Infinity
    for (const [i, call] of this.#list(at('calls'), calls).entries())
      before = this.#earlier([...at('calls'), i], call, before)
    return this.#problems
  }

  /** Checks a call. Returns its age. */
  #earlier(path: Path, call: unknown, before: number): number {
    const given = this.#object(path, call, EARLIER_CALL)
    if (!given) return before
    this.#tool([...path, 'tool'], given['tool'])
    this.#flag([...path, 'failed'], given['failed'] ?? false)
    const ago = given['ago'] === undefined ? 0 : parseAgo(given['ago'])
    if (ago === undefined) this.#add([...path, 'ago'], 'must be a time such as 30s, 5m, 2h or 1d')
    else if (ago > before) this.#add([...path, 'ago'], 'is earlier than the call before it')
    return ago ?? before
  }

  #unlocking(path: Path, by: unknown): void {
    const [key = '', ...more] = isObject(by) ? Object.keys(by) : []
    const value = isObject(by) ? by[key] : undefined
    if (more.length > 0 || !['request', 'event', 'found'].includes(key))
      this.#add(path, 'must be { request: <group> }, { event: <name> } or { found: [<tool>] }')
    else if (key === 'found') this.#tools([...path, key], value)
    else if (key === 'request') this.#name([...path, key], value, this.#known.groups, 'group')
    else this.#text([...path, key], value)
  }

  #groupState(path: Path, state: unknown): void {
    if (typeof state === 'boolean') return
    const given = this.#object(path, state, GROUP_STATE)
    if (given && typeof given['available'] !== 'boolean') this.#add([...path, 'available'], 'must be true or false')
  }

  #used(name: string, amount: unknown): void {
    this.#name(['used', name], name, this.#known.limits, 'limit', true)
    if (!Number.isSafeInteger(amount) || Number(amount) < 0) this.#add(['used', name], 'must be a whole number')
  }

  #caller(caller: unknown): void {
    try {
      if (!isObject(caller)) throw new TypeError('must be a caller or the name of one')
      defineCaller(caller)
    } catch (error) {
      this.#add(['caller'], messageOf(error).replace(/^caller\.?/, ''))
    }
  }

  #tools(path: Path, ids: unknown): void {
    for (const [i, id] of this.#list(path, ids).entries()) this.#tool([...path, i], id)
  }

  #tool(path: Path, id: unknown, isKey = false): void {
    if (isItemId(id) && this.#known.servers.has(id.split(':')[1] ?? '')) return
    this.#name(path, id, this.#known.tools, 'tool', isKey)
  }

  /** Suggestions for many names take long, and the first ones show what is wrong. */
  get #suggests(): boolean {
    return this.#problems.length < MOST_SUGGESTED
  }

  #name(path: Path, name: unknown, known: readonly string[], noun: string, isKey = false): void {
    if (typeof name !== 'string') return this.#add(path, `must be the name of a ${noun}`)
    if (known.includes(name)) return
    const near = this.#suggests ? didYouMean(name, known) : ''
    const names =
      near === '' && known.length > 0 && known.length <= MOST_NAMED ? `; known are ${known.join(', ')}` : near
    this.#add(path, `unknown ${noun} ${JSON.stringify(name)}${names}`, isKey)
  }

  #object(path: Path, value: unknown, shape: Shape): JsonObject | undefined {
    if (!isObject(value)) {
      this.#add(path, value === undefined ? 'is missing' : 'must be a mapping')
      return undefined
    }
    for (const key of Object.keys(value))
      if (!shape.keys.has(key))
        this.#add([...path, key], this.#suggests ? describeUnknown(key, shape) : 'unknown key', true)
    return value
  }

  #keys(path: Path, value: unknown): readonly string[] {
    if (value === undefined) return []
    if (isObject(value)) return Object.keys(value)
    this.#add(path, 'must be a mapping')
    return []
  }

  #list(path: Path, value: unknown): readonly unknown[] {
    if (value === undefined) return []
    if (Array.isArray(value)) return value
    this.#add(path, 'must be a list')
    return []
  }

  #text(path: Path, value: unknown): void {
    if (typeof value !== 'string') this.#add(path, 'must be text')
  }

  #flag(path: Path, value: unknown): void {
    if (typeof value !== 'boolean') this.#add(path, 'must be true or false')
  }

  #add(path: Path, message: string, isKey = false): void {
    this.#problems.push({ path: [...this.#root, ...path], message, isKey })
  }
}

const MOST_NAMED = 12
const MOST_SUGGESTED = 5
