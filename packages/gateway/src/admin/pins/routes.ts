import { type Redactor } from '@toolgate/values/redact'
import type { Answer } from '../../heart/route.ts'
import type { Caller } from '@toolgate/core'
import { PIN_STATUSES, type PinnedTool } from '@toolgate/core/pins'
import { isApprover, maySee } from '../http/callers.ts'
import { invalidBody, readBody, oneOf, parseQuery } from '../http/request.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { ApiFault } from '../../model/faults.ts'
import type { PinRow, PinsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'pins',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/pins', by: 'person', answer: pinsRoute(heart) },
      { method: 'POST', path: '/api/pins/accept', by: 'person', answer: acceptPinRoute(heart) },
    ],
  }),
}

const HASH = /^[0-9a-f]{64}$/
const MAX_ID_LENGTH = 300

/**
 * `GET /api/pins?status=&noted=true`: the tools, sorted by id. A person of a tenant does not see tools that are denied
 * to them. Approvers also see the tools on the own lists of users, in their tenant or in all.
 */
function pinsRoute({ gate, redact }: Pick<Heart, 'gate' | 'redact'>): Answer {
  return async ({ person, query }) => {
    const { status, noted } = parseQuery(query, { status: oneOf(PIN_STATUSES), noted: oneOf(['true', 'false']) })
    const rows = gate.pins
      .list()
      .filter((pin) => (status === undefined || pin.status === status) && (noted !== 'true' || isNoted(pin)))
    const seen = person.tenant === undefined ? undefined : await gate.view(person)
    const shown = rows.flatMap((pin): readonly PinnedTool[] => {
      if (!pin.users) return seen && seen.explain(pin.tool).outcome === 'deny' ? [] : [pin]
      const users = isApprover(person) ? pin.users.filter((user) => maySee(person, user)) : []
      return users.length > 0 ? [{ ...pin, users }] : []
    })
    return { pins: shown.map((pin) => toRow(pin, redact)) } satisfies PinsBody
  }
}

/** Whether a person should look at the tool: its definition differs from the pinned one, or has a finding. */
function isNoted({ status, findings }: PinnedTool): boolean {
  return status !== 'pinned' || findings.length > 0
}

/** `POST /api/pins/accept`: a person accepts the definition with this hash. */
function acceptPinRoute({ gate, redact }: Pick<Heart, 'gate' | 'redact'>): Answer {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const { tool, hash } = parseAcceptance(await readBody(request, ['tool', 'hash']))
    const by = nameApprover(person)
    return toRow(await gate.pins.accept(tool, { hash, by }), redact)
  }
}

function parseAcceptance(body: ReadonlyMap<string, unknown>): { tool: string; hash: string } {
  const [tool, hash] = [body.get('tool'), body.get('hash')]
  if (typeof tool !== 'string' || tool === '' || tool.length > MAX_ID_LENGTH)
    throw invalidBody(`The field "tool" must be the id of a tool, of at most ${MAX_ID_LENGTH} characters.`)
  if (typeof hash !== 'string' || !HASH.test(hash))
    throw invalidBody('The field "hash" must be the 64 hex digits of the definition that was looked at.')
  return { tool, hash }
}

/** Returns the user of an approver. All tenants share the catalog, so only a person without a tenant may accept. */
function nameApprover({ user, tenant, roles = [] }: Caller): string {
  if (user !== undefined && tenant === undefined && roles.includes('approver')) return user
  throw new ApiFault(
    'approval_forbidden',
    'Accepting a definition takes a person with the role "approver" and no tenant.',
  )
}

/** Redacts diffs and findings, which quote the server. */
function toRow(pin: PinnedTool, { redactText }: Redactor): PinRow {
  const { tool, status, isNew, hash, pinnedHash, since, by, diff, findings, quarantined, users } = pin
  const quoted = <T extends { readonly text: string }>(one: T): T => ({ ...one, text: redactText(one.text) })
  return {
    tool,
    status,
    ...(isNew ? { isNew } : {}),
    hash,
    ...(pinnedHash === undefined ? {} : { pinnedHash }),
    ...(since === undefined ? {} : { since }),
    ...(by === undefined ? {} : { by }),
    ...(diff === undefined ? {} : { diff: { ...quoted(diff), changes: diff.changes.map(quoted) } }),
    findings: findings.map(quoted),
    quarantined,
    ...(users && { users }),
  }
}
