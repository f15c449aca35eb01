import type { Caller } from '@toolgate/core'
import type { OwnSource, OwnSources } from '@toolgate/core/toolset'
import { ownerOf } from '../../model/owner.ts'
import type { UserList, UserLists } from '../instances/user-lists.ts'
import type { UpstreamSource } from './sources.ts'

/** The catalog's lists of a server that has a separate list for each user. */
export class UserSources implements OwnSources {
  readonly #lists: UserLists
  readonly #open: (list: UserList) => Pick<UpstreamSource, 'tools'>
  readonly #sources = new WeakMap<UserList, OwnSource>()

  /** `open` returns the source of one user's list. */
  constructor(lists: UserLists, open: (list: UserList) => Pick<UpstreamSource, 'tools'>) {
    this.#lists = lists
    this.#open = open
  }

  readonly of = (caller: Caller): OwnSource | undefined => {
    const owner = ownerOf(caller)
    const list = owner && this.#lists.of(owner)
    return list && this.#sourceOf(list)
  }

  readonly all = (): readonly OwnSource[] => this.#lists.all.map((list) => this.#sourceOf(list))

  readonly subscribe = (listener: (source: OwnSource) => void): (() => void) =>
    this.#lists.subscribe((list) => listener(this.#sourceOf(list)))

  #sourceOf(list: UserList): OwnSource {
    let own = this.#sources.get(list)
    if (!own) {
      const source = this.#open(list)
      const { name: user, ofTenant: tenant } = list.owner
      const owner = { user, ...(tenant === undefined ? {} : { tenant }) }
      this.#sources.set(list, (own = { owner, tools: () => source.tools() }))
    }
    return own
  }
}
