import type { RejectedItem } from '../../model/upstream.ts'
import { clip } from '../transport/json-rpc.ts'

/** The maximum length of a rejected item's name. Longer names are cut. */
const MAX_SHOWN_NAME = 128

/** Returns the rejected item of a server with this id. */
export function findRejected(server: string, rejected: readonly RejectedItem[], id: string): RejectedItem | undefined {
  return rejected.find(({ kind, name }) => {
    const prefix = kind === 'tool' ? `${server}:` : `${kind === 'prompt' ? 'prompt' : 'resource'}:${server}:`
    // The names of rejected items are cut, as they may have any length.
    const asked = id.slice(prefix.length)
    return id.startsWith(prefix) && (asked === name || clip(asked, MAX_SHOWN_NAME) === name)
  })
}

/** Returns a sentence about a rejected item, without a full stop. */
export function describeRejected({ kind, name, reason, part }: RejectedItem): string {
  const item = `its ${kind} ${JSON.stringify(name)}`
  return part
    ? `${item} is offered without its ${part === 'name' ? 'own name' : part}: ${reason}`
    : `${item} cannot be offered: ${reason}`
}

/** The maximum number of sentences about one server. */
const MAX_SHOWN = 20

/** Returns a sentence for each rejected item of a server, and one for the rest if there are many. */
export function describeAllRejected(rejected: readonly RejectedItem[]): readonly string[] {
  const shown = rejected.slice(0, MAX_SHOWN).map(describeRejected)
  const more = rejected.length - shown.length
  return more > 0 ? [...shown, `${more} more of its items are rejected; GET /api/servers lists them`] : shown
}
