import type { Answer } from '../../heart/route.ts'
import { type Caller, ConfigError } from '@toolgate/core'
import type { Preferences } from '@toolgate/core/internal'
import { invalidBody, readBody, parseQuery, shortText } from '../http/request.ts'
import { createNamedCallers, findCaller, isApprover, type NamedCallers } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { ApiFault } from '../../model/faults.ts'
import type { PreferencesBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'preferences',
  open({ gate, revisions, door }) {
    const callers = createNamedCallers(() => revisions.current.callers, door.people)
    return {
      routes: [
        { method: 'GET', path: '/api/preferences', by: 'person', answer: preferencesRoute(gate, callers) },
        { method: 'PUT', path: '/api/preferences', by: 'person', answer: setPreferencesRoute(gate, callers) },
      ],
    }
  },
}

type PreferencesGate = Pick<Heart['gate'], 'preferences'>

const FIELDS = ['groups', 'tools']

/** `GET /api/preferences`, or `?as=`: the tools that the person, or a configured caller, has switched off. */
function preferencesRoute({ preferences }: PreferencesGate, callers: NamedCallers): Answer {
  return ({ query, person }) => {
    const { as } = parseQuery(query, { as: shortText })
    const whose = as === undefined ? person : findCaller(callers, { as }, person).caller
    return toBody(preferences.get(whose))
  }
}

/** `PUT /api/preferences`: replaces them. Changing another caller's with `?as=` needs the role `approver`. */
function setPreferencesRoute({ preferences }: PreferencesGate, callers: NamedCallers): Answer {
  return async ({ query, person, request }) => {
    const { as } = parseQuery(query, { as: shortText })
    const body = await readBody(request, FIELDS)
    const whose = as === undefined ? person : findCaller(callers, { as }, person).caller
    if (!isSame(whose, person) && !isApprover(person))
      throw new ApiFault(
        'preferences_forbidden',
        'Changing the preferences of another caller takes the role "approver".',
      )
    try {
      return toBody(await preferences.set(whose, Object.fromEntries(body) as unknown as Preferences))
    } catch (error) {
      if (error instanceof ConfigError) throw invalidBody(error.message)
      throw error
    }
  }
}

function isSame(a: Caller, b: Caller): boolean {
  return a.user === b.user && a.tenant === b.tenant
}

function toBody({ groups, tools }: Preferences = { groups: [], tools: [] }): PreferencesBody {
  return { groups, tools }
}
