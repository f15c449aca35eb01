import { type Caller, ToolgateError } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import type { Answer } from '../../heart/route.ts'
import type { Heart } from '../../heart/heart.ts'
import { ApiFault } from '../../model/faults.ts'
import type { ForgottenPersonBody } from '../../model/rows.ts'
import { maySee } from '../http/callers.ts'
import { recordChange } from '../http/record-change.ts'
import { parseQuery, required, shortText } from '../http/request.ts'

type ForgetHeart = Pick<Heart, 'gate' | 'stores' | 'clock' | 'door' | 'revisions'>

/** The number of people whose names are compared with an unknown one. */
const MAX_COMPARED = 5000

/**
 * `DELETE /api/people?user=&tenant=`: removes the record of a person. They are recorded again when they come again. A
 * person of a tenant may forget only people of this tenant.
 */
export function forgetRoute(heart: ForgetHeart): Answer {
  return async ({ person, query }) => {
    const { user: asked, tenant = person.tenant } = parseQuery(query, { user: shortText, tenant: shortText })
    const user = required('user', asked)
    const by = nameForgetter(person)
    const who = { user, ...(tenant !== undefined && { tenant }) }
    if (!maySee(person, who)) throw unknown(who, person, heart)
    if (heart.revisions.current.callers.some(({ caller }) => caller.user === user && caller.tenant === tenant))
      throw new ApiFault('person_in_file', `${named(who)} is a caller of the file: remove it there, and reload.`)
    const removed = await heart.door.people.forget(who).catch((cause: unknown) => {
      const message = 'The person is still recorded: the state store did not take the change.'
      throw new ToolgateError('state_unavailable', message, { cause })
    })
    if (removed === 0) throw unknown(who, person, heart)
    await recordChange(heart, 'person_forgotten', { detail: named(who), by })
    return { ...who, removed } satisfies ForgottenPersonBody
  }
}

function nameForgetter({ user, roles = [] }: Caller): string {
  if (user !== undefined && roles.some((role) => role === 'operator' || role === 'approver')) return user
  throw new ApiFault('person_forbidden', 'To forget people takes a person with the role "operator" or "approver".')
}

function unknown(who: Pick<Caller, 'user' | 'tenant'>, person: Caller, { door }: ForgetHeart): ApiFault {
  const seen = door.people.list().filter((one) => maySee(person, one))
  const others = seen.filter(({ user }) => user === who.user)
  const known = others.length > 0 ? `; known are ${others.slice(0, 5).map(named).join(', ')}` : ''
  const near =
    known === ''
      ? didYouMean(
          who.user ?? '',
          seen.slice(0, MAX_COMPARED).map(({ user }) => user),
        )
      : ''
  return new ApiFault('person_unknown', `The gateway has not seen ${named(who)}${known}${near}.`)
}

function named({ user = '', tenant }: Pick<Caller, 'user' | 'tenant'>): string {
  return `${JSON.stringify(user.slice(0, 100))}${tenant === undefined ? '' : ` of ${JSON.stringify(tenant.slice(0, 100))}`}`
}
