export const PAGES = ['tools', 'tool', 'live', 'approvals', 'callers'] as const
export type Page = (typeof PAGES)[number]

/** What the address bar keeps: the page, and what was chosen on it. */
export interface Address {
  readonly page: Page
  readonly choices: ReadonlyMap<string, string>
}

/** Addresses that were given out before and still lead somewhere. */
const FORMER: ReadonlyMap<string, Page> = new Map([['audit', 'live']])

/**
 * Reads `#/live?tool=files:read`. Anything that is not a page of ours is the first page.
 *
 * @example
 * parseAddress('#/live?user=vera').choices.get('user') // 'vera'
 */
export function parseAddress(hash: string): Address {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s)
  const page = PAGES.find((name) => name === path) ?? FORMER.get(path)
  return page ? { page, choices: new Map(new URLSearchParams(query)) } : { page: PAGES[0], choices: new Map() }
}

/** Writes an address so that it reads back the same. Empty choices are left out; `:` and `/` stay readable. */
export function formatAddress({ page, choices }: Address): string {
  const query = new URLSearchParams([...choices].filter(([, value]) => value !== ''))
  const text = query.toString().replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text === '' ? `#/${page}` : `#/${page}?${text}`
}

/** Gives the address with some choices changed; an empty one is taken away. */
export function withChoices(address: Address, changes: Readonly<Record<string, string>>): Address {
  const choices = new Map(address.choices)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') choices.delete(name)
    else choices.set(name, value)
  }
  return { page: address.page, choices }
}

/**
 * Gives the address of a page with some choices, for a link.
 *
 * @example
 * linkTo('tool', { id: 'files:read_file', as: 'viewer' }) // '#/tool?id=files:read_file&as=viewer'
 */
export function linkTo(page: Page, choices: Readonly<Record<string, string>> = {}): string {
  return formatAddress({ page, choices: new Map(Object.entries(choices)) })
}
