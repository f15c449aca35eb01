export const PAGES = ['tools', 'audit', 'approvals'] as const
export type Page = (typeof PAGES)[number]

/** What the address bar keeps: the page, and what was chosen on it. */
export interface Address {
  readonly page: Page
  readonly choices: ReadonlyMap<string, string>
}

/**
 * Reads `#/audit?tool=files:read`. Anything that is not a page of ours is the first page.
 *
 * @example
 * parseAddress('#/audit?user=vera').choices.get('user') // 'vera'
 */
export function parseAddress(hash: string): Address {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s)
  const page = PAGES.find((name) => name === path)
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
