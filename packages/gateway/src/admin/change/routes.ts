import type { Answer } from '../../heart/route.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { policy as policyRoom } from '../policy/start.ts'
import { openQuestions } from './open-questions.ts'
import type { ThreadQuestions } from './questions.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody, time } from '../http/request.ts'
import type { ProposedText, ThreadQuestion } from './questions.ts'
import { isRedacted } from '../policy/placed.ts'
import { nameOperator } from '../http/may.ts'
import type { CatalogBody } from '../../model/changes.ts'
import { takeSnapshot } from '@toolgate/change'

export const room: Room = {
  name: 'change',
  needs: [policyRoom],
  open(heart) {
    const { close, ...questions } = openQuestions(heart)
    const routeOf = (asking: QuestionForm) => changeRoute(asking, questions, heart)
    return {
      routes: [
        { method: 'POST', path: '/api/what-if', by: 'person', answer: routeOf(WHAT_IF) },
        { method: 'POST', path: '/api/compare', by: 'person', answer: routeOf(COMPARE) },
        { method: 'POST', path: '/api/test', by: 'person', answer: routeOf(TEST) },
        { method: 'POST', path: '/api/suggest', by: 'person', answer: routeOf(SUGGEST) },
        { method: 'GET', path: '/api/catalog', by: 'person', answer: catalogRoute(heart) },
      ],
      close,
    }
  },
}

/** The maximum size: a file of 1 MiB whose characters may be escaped in JSON. */
const MAX_BODY_BYTES = 2 * 1024 * 1024
const MAX_TESTS_CHARS = 256 * 1024

type QuestionBody = ReadonlyMap<string, unknown>

/** The form of a question in the body of a request. */
interface QuestionForm {
  /** The name of the question, such as `A what-if`. */
  readonly what: string
  readonly fields: readonly string[]
  /** @throws {ApiFault} */
  read(body: QuestionBody): ThreadQuestion
}

/** `POST /api/what-if`: the effects of another configuration on callers and recorded calls. */
const WHAT_IF: QuestionForm = {
  what: 'A what-if',
  fields: ['config', 'policy', 'since'],
  read: (body) => ({ what: 'whatIf', ...readProposed(body), since: readSince(body.get('since')) }),
}

/** `POST /api/compare`: whether another configuration grants at most the rights of the current one. */
const COMPARE: QuestionForm = {
  what: 'A comparison',
  fields: ['config', 'policy'],
  read: (body) => ({ what: 'compare', ...readProposed(body) }),
}

/** `POST /api/test`: the results of policy tests for another configuration, or for the current one. */
const TEST: QuestionForm = {
  what: 'A test of a policy',
  fields: ['tests', 'config', 'policy'],
  read(body) {
    const tests = body.get('tests')
    if (typeof tests !== 'string' || tests.length > MAX_TESTS_CHARS)
      throw invalidBody(
        `The field "tests" must be the text of a file of tests, of at most ${MAX_TESTS_CHARS} characters.`,
      )
    const isOther = body.has('config') || body.has('policy')
    return { what: 'test', tests, proposed: isOther ? readProposed(body) : undefined }
  },
}

/** `POST /api/suggest`: the smallest policy that recorded calls need. */
const SUGGEST: QuestionForm = {
  what: 'A suggestion',
  fields: ['since', 'role'],
  read(body) {
    const role = body.get('role')
    if (role !== undefined && (typeof role !== 'string' || role === ''))
      throw invalidBody('The field "role" must be a text that is not empty.')
    return { what: 'suggest', since: readSince(body.get('since')), role }
  },
}

/**
 * Creates the route of a question. A question changes nothing. All routes together answer one question at a time, and a
 * question ends when its client disconnects.
 */
function changeRoute(
  { what, fields, read }: QuestionForm,
  questions: ThreadQuestions,
  heart: Pick<Heart, 'revisions' | 'redact'>,
): Answer {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, fields, MAX_BODY_BYTES)
    nameOperator(person, 'what_if_forbidden', what)
    const question = read(body)
    if (body.has('policy') && isRedacted(heart))
      throw new ApiFault('reload_refused', 'The policy holds text that is redacted here; change it in the file.')
    return questions.ask(question, { person, signal: request.signal })
  }
}

/** `GET /api/catalog`: the catalog as data. It has the texts and schemas of all items, so it needs the same rights. */
function catalogRoute({ gate, servers }: Pick<Heart, 'gate' | 'servers'>): Answer {
  return ({ person, query }): CatalogBody => {
    parseQuery(query, {})
    nameOperator(person, 'what_if_forbidden', 'The catalog')
    const down = servers.fleet.rows().filter(({ status }) => status !== 'ready')
    return {
      catalog: takeSnapshot(gate.catalog),
      down: down.map(({ name, status, reason = status }) => ({ name, reason })),
    }
  }
}

function readProposed(body: QuestionBody): ProposedText {
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
    // The error is handled below.
  }
  throw invalidBody('The field "since" must be a time such as 2026-11-21T09:00:00Z, or milliseconds since 1970.')
}
