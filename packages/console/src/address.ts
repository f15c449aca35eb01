import { OWN } from './people.ts'

export const PAGES = [
  'tools',
  'tool',
  'overview',
  'live',
  'calls',
  'runs',
  'approvals',
  'policy',
  'people',
  'servers',
  'replicas',
] as const
export type Page = (typeof PAGES)[number]

/** The state in the address bar: the page, and the choices on it. */
export interface Address {
  readonly page: Page
  readonly choices: ReadonlyMap<string, string>
}

/** Former addresses that still work. */
const FORMER: ReadonlyMap<string, readonly [Page, Readonly<Record<string, string>>]> = new Map([
  ['audit', ['live', {}]],
  ['callers', ['people', { view: 'matrix' }]],
  ['keys', ['people', { view: 'keys' }]],
  ['connections', ['people', { open: OWN }]],
])

/**
 * Parses `#/live?tool=files:read`. An unknown page becomes the first page.
 *
 * @example
 * parseAddress('#/live?user=vera').choices.get('user') // 'vera'
 */
export function parseAddress(hash: string): Address {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s)
  const choices = new Map(new URLSearchParams(query))
  const page = PAGES.find((name) => name === path)
  if (page) return { page, choices }
  const [former, added = {}] = FORMER.get(path) ?? []
  return former
    ? { page: former, choices: new Map([...Object.entries(added), ...choices]) }
    : { page: PAGES[0], choices: new Map() }
}

/** Returns an address as a hash that `parseAddress` reads back. Leaves out empty choices; `:` and `/` stay readable. */
export function formatAddress({ page, choices }: Address): string {
  const query = new URLSearchParams([...choices].filter(([, value]) => value !== ''))
  const text = query.toString().replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text === '' ? `#/${page}` : `#/${page}?${text}`
}

/** Returns the address with some choices changed. An empty value removes a choice. */
export function withChoices(address: Address, changes: Readonly<Record<string, string>>): Address {
  const choices = new Map(address.choices)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') choices.delete(name)
    else choices.set(name, value)
  }
  return { page: address.page, choices }
}

/**
 * Returns the address of a page with some choices, for a link.
 *
 * @example
 * linkTo('tool', { id: 'files:read_file', as: 'viewer' }) // '#/tool?id=files:read_file&as=viewer'
 */
export function linkTo(page: Page, choices: Readonly<Record<string, string>> = {}): string {
  return formatAddress({ page, choices: new Map(Object.entries(choices)) })
}
