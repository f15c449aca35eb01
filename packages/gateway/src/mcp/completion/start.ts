import type { Room } from '../../heart/room.ts'
import { isOffered } from '../../model/upstream.ts'
import { completeArgument } from './complete.ts'

/** Completes arguments of prompts and of resource templates. */
export const completion: Room = {
  name: 'completion',
  open({ revisions, catalog: { lists: names, owners }, servers: { fleet } }) {
    const isServed = () => isOffered(revisions.current.servers, 'resources', 'prompts')
    const complete: typeof fleet.complete = (server, params, call) => fleet.complete(server, params, call)
    return {
      methods: () =>
        isServed()
          ? [
              {
                name: 'completion/complete',
                serve: (request, { gate }) => completeArgument({ gate, names, owners, complete }, request),
              },
            ]
          : [],
      capabilities: () => (isServed() ? { completions: {} } : {}),
    }
  },
}
