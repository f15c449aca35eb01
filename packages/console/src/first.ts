import { type Address, parseAddress } from './address.ts'
import { getJson, type GetOptions } from './api.ts'
import { queryOf } from './calls.ts'
import { PAGE_CONTENT } from './pages.ts'

/** A request of the first view, under the key that the view asks React Query for. */
interface First {
  readonly key: readonly unknown[]
  readonly path: string
  readonly query?: NonNullable<GetOptions['query']>
  /** Makes the cache's data of the body. */
  readonly toData?: (body: unknown) => unknown
}

/** The first requests of each page. */
const EVERYWHERE: readonly First[] = [
  { key: ['session'], path: '/api/session' },
  { key: ['approvals', 'waiting'], path: '/api/approvals/waiting' },
  { key: ['halts'], path: '/api/halts' },
  { key: ['warnings'], path: '/api/warnings' },
]

const CALLERS: First = { key: ['callers'], path: '/api/callers' }

/** The first data of a page, where its address alone names it. */
function ofPage({ page, choices }: Address): readonly First[] {
  if (page === 'overview') {
    const period = choices.get('period') ?? '24h'
    return [{ key: ['overview', period], path: '/api/overview', query: { period } }]
  }
  if (page === 'approvals')
    return [{ key: ['approvals', 'pending'], path: '/api/approvals', query: { status: 'pending', limit: 1000 } }]
  if (page === 'calls' && !choices.has('range')) {
    const query = queryOf(choices, 0)
    const toData = (body: unknown): unknown => ({ pages: [body], pageParams: [undefined] })
    return [{ key: ['calls', query, 0], path: '/api/calls', query: { ...query, limit: 200 }, toData }]
  }
  if (page === 'tools') {
    const [as, caller, app, kind] = ['as', 'caller', 'app', 'kind'].map((name) => choices.get(name) ?? '')
    const list: First = {
      key: ['tools', as, caller, app, kind],
      path: '/api/tools/columns',
      query: { as, caller, app, kind },
    }
    return [CALLERS, ...(as === '' && caller === '' ? [] : [list])]
  }
  if (page === 'tool') {
    const [id, as, caller, app] = ['id', 'as', 'caller', 'app'].map((name) => choices.get(name) ?? '')
    const tool: First = { key: ['tool', id, as, caller, app], path: '/api/tool', query: { tool: id, as, caller, app } }
    return [CALLERS, ...(id === '' || (as === '' && caller === '') ? [] : [tool])]
  }
  if (page !== 'people') return []
  if (choices.get('view') === 'matrix') {
    const [from, open] = [Math.max(0, Math.floor(Number(choices.get('from') ?? 0)) || 0), choices.get('open') ?? '']
    return [{ key: ['columns', from, open], path: '/api/matrix', query: { from, limit: 8, open } }]
  }
  const [text = '', tenant = '', role = ''] = ['text', 'tenant', 'role'].map((name) => choices.get(name) ?? '')
  const filters = { text, tenant, role }
  return choices.has('view') ? [] : [{ key: ['people', filters], path: '/api/people', query: filters }]
}

const address = parseAddress(location.hash)
void PAGE_CONTENT[address.page].load()

/**
 * The requests of the first view. They go out when this module is evaluated, which is before React is: on a slow machine
 * their answers are there by the time that a page asks for them.
 */
export const FIRST = [...EVERYWHERE, ...ofPage(address)].map(({ key, path, query = {}, toData = (body) => body }) => ({
  key,
  data: getJson(path, { query }).then(toData),
}))

/** Resolves when all of them are answered or have failed. */
export const FIRST_ANSWERED: Promise<unknown> = Promise.allSettled(FIRST.map(({ data }) => data))
