import { type Address, type Page, parseAddress } from './address.ts'
import { getJson, type GetOptions } from './api.ts'
import { queryOf } from './calls.ts'
import { callerOf } from './callers-query.ts'
import { matrixQuery } from './people.ts'
import { PAGE_CONTENT } from './pages.ts'

/** A request of the first view. It has the same React Query key as the view's own query. */
interface First {
  readonly key: readonly unknown[]
  readonly path: string
  readonly query?: NonNullable<GetOptions['query']>
  /** Converts the body to the data that the cache stores. */
  readonly toData?: (body: unknown) => unknown
}

/** The first requests of each page. */
const EVERYWHERE: readonly First[] = [
  { key: ['session'], path: '/api/session' },
  { key: ['approvals', 'waiting'], path: '/api/approvals/waiting' },
  { key: ['halts'], path: '/api/halts' },
  { key: ['warnings'], path: '/api/warnings' },
]

/** The first requests of a page that do not depend on its address. */
const ALWAYS: Partial<Record<Page, readonly First[]>> = {
  calls: [{ key: ['audit', 'evidence'], path: '/api/audit/evidence' }],
  policy: [{ key: ['policy'], path: '/api/policy' }],
  servers: [{ key: ['servers'], path: '/api/servers' }],
}

const toPages = (body: unknown): unknown => ({ pages: [body], pageParams: [undefined] })

/** Returns the first requests of a page that depend on its address. */
function ofAddress({ page, choices }: Address): readonly First[] {
  const of = (name: string): string => choices.get(name) ?? ''
  if (page === 'overview') {
    const period = choices.get('period') ?? '24h'
    return [{ key: ['overview', period], path: '/api/overview', query: { period } }]
  }
  if (page === 'approvals')
    return [{ key: ['approvals', 'pending'], path: '/api/approvals', query: { status: 'pending', limit: 1000 } }]
  if (page === 'calls' && !choices.has('range')) {
    const query = queryOf(choices, 0)
    return [{ key: ['calls', query, 0], path: '/api/calls', query: { ...query, limit: 200 }, toData: toPages }]
  }
  if (page === 'runs' && !choices.has('range')) {
    const [text, user, tenant, label, state] = ['text', 'user', 'tenant', 'label', 'state'].map(of)
    const query = { text, user, tenant, label, state, since: '' }
    return [{ key: ['runs', query], path: '/api/runs', query: { ...query, limit: 200 }, toData: toPages }]
  }
  const [id = '', as = '', caller = '', app = '', kind = ''] = ['id', 'as', 'caller', 'app', 'kind'].map(of)
  const isAsked = as !== '' || caller !== ''
  const callers: First = { key: ['callers', callerOf(as)], path: '/api/callers', query: { ...callerOf(as) } }
  if (page === 'tools')
    return [
      callers,
      ...(isAsked
        ? [{ key: ['tools', as, caller, app, kind], path: '/api/tools/columns', query: { as, caller, app, kind } }]
        : []),
    ]
  if (page === 'tool')
    return [
      callers,
      ...(isAsked && id !== ''
        ? [{ key: ['tool', id, as, caller, app], path: '/api/tool', query: { tool: id, as, caller, app } }]
        : []),
    ]
  return page === 'people' ? ofPeople(of) : []
}

function ofPeople(of: (name: string) => string): readonly First[] {
  const view = of('view')
  if (view === 'keys') return [{ key: ['keys'], path: '/api/keys' }]
  if (view === 'matrix') {
    const query = matrixQuery(of)
    return [{ key: ['columns', query], path: '/api/matrix', query }]
  }
  const [text, tenant, role] = ['text', 'tenant', 'role'].map(of)
  return view === ''
    ? [{ key: ['people', { text, tenant, role }], path: '/api/people', query: { text, tenant, role }, toData: toPages }]
    : []
}

const ADDRESS = parseAddress(location.hash)

/**
 * The requests of the first view. They are sent when this module is evaluated, before React is loaded, so that on a
 * slow machine the answers are there when the page needs them.
 */
export const FIRST = [...EVERYWHERE, ...(ALWAYS[ADDRESS.page] ?? []), ...ofAddress(ADDRESS)].map(
  ({ key, path, query = {}, toData = (body) => body }) => ({ key, data: getJson(path, { query }).then(toData) }),
)

/** Resolves when the first page's content is loaded. */
export const FIRST_CONTENT: Promise<void> = PAGE_CONTENT[ADDRESS.page].load()

/** Resolves when all of the requests are answered or have failed. */
export const FIRST_ANSWERED: Promise<unknown> = Promise.allSettled(FIRST.map(({ data }) => data))
