import type { Gate } from '@toolgate/core'
import type { Room } from '../../heart/room.ts'
import { isOffered } from '../../model/upstream.ts'
import { resourceMethods } from './methods.ts'
import { ResourceSubscriptions } from './subscriptions.ts'

/** The subscriptions that clients of 2026-07-28 open with a stream. */
export interface Resources {
  /** Returns the subscriptions of an endpoint, by its gate; `undefined` if no server offers resources now. */
  subscriptionsOf(gate: Pick<Gate, 'view'>): ResourceSubscriptions | undefined
}

/** Serves the resources of the servers that offer them, and subscriptions to them. */
export const resources: Room<Resources> = {
  name: 'resources',
  open({ revisions, catalog, servers: { fleet }, onFault }) {
    const { lists: names, items: lists, owners } = catalog
    const isServed = () => isOffered(revisions.current.servers, 'resources')
    const opened = new WeakMap<Pick<Gate, 'view'>, ResourceSubscriptions>()
    const subscriptionsOf = (gate: Pick<Gate, 'view'>) => {
      let own = opened.get(gate)
      if (!own) {
        const watchResource: typeof fleet.watchResource = (...args) => fleet.watchResource(...args)
        opened.set(gate, (own = new ResourceSubscriptions({ gate, names, owners, watchResource, onFault })))
      }
      return own
    }
    return {
      service: { subscriptionsOf: (gate) => (isServed() ? subscriptionsOf(gate) : undefined) },
      methods: () => (isServed() ? resourceMethods({ names, lists, owners, subscriptionsOf }) : []),
      capabilities: () => (isServed() ? { resources: { subscribe: true, listChanged: true } } : {}),
    }
  },
}
