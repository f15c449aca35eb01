import { type Caller, ToolgateError } from '@toolgate/core'
import type { Grants } from '@toolgate/core/call'
import type { Grant, GrantFilter } from '@toolgate/core/stores'
import { GRANT_STATUSES } from '@toolgate/core/words'
import { redactGrant } from '../../config/redaction.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { GrantRow, GrantsBody } from '../../model/approvals.ts'
import { maySee } from '../http/callers.ts'
import { oneOf, parseQuery, shortText, textUpTo, wholeNumber } from '../http/request.ts'

type GrantsHeart = Pick<Heart, 'gate' | 'redact'>

export const room: Room = {
  name: 'grants',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/grants', by: 'person', answer: grantsRoute(heart) },
      { method: 'DELETE', path: '/api/grants/:id', by: 'person', answer: revokeRoute(heart) },
    ],
  }),
}

const MAX_REASON_LENGTH = 500
const MAX_LIMIT = 1000

/** `GET /api/grants?status=&user=&tool=&tenant=&before=&limit=`: newest first, including ended ones. */
function grantsRoute(heart: GrantsHeart): Answer {
  const { grants } = heart.gate
  return async ({ query, person }) => {
    const asked = parseQuery(query, {
      limit: wholeNumber(1, MAX_LIMIT),
      status: oneOf(GRANT_STATUSES),
      user: shortText,
      tool: shortText,
      tenant: shortText,
      before: shortText,
    })
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    // Another tenant has no grants, as far as a person of a tenant can see.
    const isElsewhere = person.tenant !== undefined && asked.tenant !== undefined && asked.tenant !== person.tenant
    const filter: GrantFilter = { ...asked, ...tenant }
    const found = isElsewhere ? [] : await grants.list(filter)
    const rows = found.filter((grant) => maySee(person, grant)).map((grant) => toRow(grant, person, heart))
    return { grants: rows, ...boundsOf(grants) } satisfies GrantsBody
  }
}

function boundsOf({ rules }: Pick<Grants, 'rules'>): Pick<GrantsBody, 'bounds'> {
  if (!rules) return {}
  const { maxMs, maxUses, by } = rules
  return { bounds: { maxMs, maxUses, ...(by !== undefined && { by }) } }
}

/** `DELETE /api/grants/<id>?reason=`: ends a grant at once. */
function revokeRoute(heart: GrantsHeart): Answer {
  const { grants } = heart.gate
  return async ({ id, person, query }) => {
    const { reason } = parseQuery(query, { reason: textUpTo(MAX_REASON_LENGTH) })
    const grant = await grants.get(id)
    // People of a tenant must not learn of another tenant's grants.
    if (!grant || !maySee(person, grant))
      throw new ToolgateError('grant_unknown', `There is no grant ${JSON.stringify(id.slice(0, 100))}.`)
    return toRow(await grants.revoke(person, id, { reason }), person, heart)
  }
}

function toRow(grant: Grant, person: Caller, { gate, redact }: GrantsHeart): GrantRow {
  const isOpen = grant.status === 'live' || grant.status === 'used'
  return { ...redactGrant(grant, redact), mayRevoke: isOpen && gate.grants.mayRevoke(person, grant) }
}
