import { ConfigError } from '@toolgate/core'
import type { Caller } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route, time } from '../request.ts'
import type { AskedChange } from '../../change/what-if.ts'
import { isRedacted } from './policy.ts'
import { nameOperator } from './reload.ts'

/** A file of 1 MiB, each character of which JSON may escape. */
const MAX_BODY_BYTES = 2 * 1024 * 1024
/** They are parsed while agents wait. */
const MAX_TESTS_CHARS = 256 * 1024

type Body = ReadonlyMap<string, unknown>
type Changes = NonNullable<ApiDeps['changes']>

/** What is asked of rules that somebody proposes. */
interface Asking {
  /** Such as `A what-if`. */
  readonly what: string
  readonly fields: readonly string[]
  /** Reads the body before anything is done. */
  read(
    body: Body,
  ): (changes: Changes, of: { readonly person: Caller; readonly signal: AbortSignal }) => Promise<unknown>
}

/** `POST /api/what-if`: what the rules of another configuration would mean for callers and recorded calls. */
const WHAT_IF: Asking = {
  what: 'A what-if',
  fields: ['config', 'policy', 'since'],
  read(body) {
    const asked = { ...readChange(body), since: readSince(body.get('since')) }
    return (changes, of) => changes.whatIf({ ...asked, ...of })
  },
}

/** `POST /api/compare`: whether another configuration grants no more than the one in force. */
const COMPARE: Asking = {
  what: 'A comparison',
  fields: ['config', 'policy'],
  read(body) {
    const asked = readChange(body)
    return (changes, { signal }) => changes.compare({ ...asked, signal })
  },
}

/** `POST /api/test`: what tests of a policy come to: of another configuration, or of the one in force. */
const TEST: Asking = {
  what: 'A test of a policy',
  fields: ['tests', 'config', 'policy'],
  read(body) {
    const tests = body.get('tests')
    if (typeof tests !== 'string' || tests.length > MAX_TESTS_CHARS)
      throw invalidBody(
        `The field "tests" must be the text of a file of tests, of at most ${MAX_TESTS_CHARS} characters.`,
      )
    const isOther = body.has('config') || body.has('policy')
    const asked = isOther ? readChange(body) : { text: undefined, isPolicy: false }
    return (changes, { signal }) => changes.test({ ...asked, tests, signal })
  },
}

/** `POST /api/suggest`: the least that recorded calls show to be needed. */
const SUGGEST: Asking = {
  what: 'A suggestion',
  fields: ['since', 'role'],
  read(body) {
    const role = body.get('role')
    if (role !== undefined && (typeof role !== 'string' || role === ''))
      throw invalidBody('The field "role" must be a text that is not empty.')
    const since = readSince(body.get('since'))
    return (changes, of) => changes.suggest({ since, role, ...of })
  },
}

/** Returns the routes about changes. None changes anything. One at a time over all of them; each ends when its client goes. */
export function changeRoutes(deps: ApiDeps): Readonly<Record<'whatIf' | 'compare' | 'test' | 'suggest', Route>> {
  let isBusy = false
  const routeOf =
    ({ what, fields, read }: Asking): Route =>
    async ({ person, query, request }) => {
      parseQuery(query, {})
      const body = await readBody(request, fields, MAX_BODY_BYTES)
      nameOperator(person, 'what_if_forbidden', what)
      const ask = read(body)
      const { changes } = deps
      if (!changes) throw new ApiFault('reload_refused', 'This gateway has no file to compare with.')
      if (body.has('policy') && isRedacted(deps))
        throw new ApiFault('reload_refused', 'The policy holds text that is redacted here; change it in the file.')
      if (isBusy)
        throw new ApiFault(
          'what_if_busy',
          'Another what-if, comparison, test or suggestion is running; ask again when it has ended.',
        )
      isBusy = true
      try {
        return await ask(changes, { person, signal: request.signal })
      } catch (error) {
        if (error instanceof ConfigFileError || error instanceof ConfigError)
          throw new ApiFault('config_invalid', error.message)
        throw error
      } finally {
        isBusy = false
      }
    }
  return { whatIf: routeOf(WHAT_IF), compare: routeOf(COMPARE), test: routeOf(TEST), suggest: routeOf(SUGGEST) }
}

function readChange(body: ReadonlyMap<string, unknown>): Pick<AskedChange, 'text' | 'isPolicy'> {
  const [config, policy] = [body.get('config'), body.get('policy')]
  if (typeof config === 'string' && policy === undefined) return { text: config, isPolicy: false }
  if (typeof policy === 'string' && config === undefined) return { text: policy, isPolicy: true }
  throw invalidBody('The body must have "config", the text of a configuration, or "policy", that of its section.')
}

function readSince(value: unknown): number | undefined {
  if (value === undefined) return undefined
  try {
    if (typeof value === 'string' || typeof value === 'number') return time(String(value))
  } catch {
    // As below.
  }
  throw invalidBody('The field "since" must be a time such as 2026-11-21T09:00:00Z, or milliseconds since 1970.')
}
