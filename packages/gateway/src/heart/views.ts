import type { Caller, Gate, View } from '@toolgate/core'
import type { Heart } from './heart.ts'

type Viewing = Pick<Heart, 'gate'> & {
  readonly servers: { readonly fleet: Pick<Heart['servers']['fleet'], 'prepare' | 'firstLists'> }
}

/**
 * Returns the views of a gate. Each view waits until its caller's own lists are loaded, as a call may continue after a
 * restart, and for the first lists of servers with `waitForStart`.
 */
export function withLists({ gate, servers }: Viewing): Pick<Gate, 'apps' | 'view' | 'subscribe' | 'approvals'> {
  return {
    apps: gate.apps,
    approvals: gate.approvals,
    subscribe: (listener) => gate.subscribe(listener),
    async view(caller, options) {
      await Promise.all([servers.fleet.prepare(caller, false), servers.fleet.firstLists()])
      return gate.view(caller, options)
    },
  }
}

/** Returns the same views, by the name of an app. @throws {ToolgateError} `app_unknown` */
export function preparedViews(heart: Viewing): (caller: Caller, app: string | undefined) => Promise<View> {
  const { view } = withLists(heart)
  return async (caller, app) => view(caller, { app })
}
