import type { Answer } from '../../heart/route.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { ApiFault } from '../../model/faults.ts'
import type { PolicyRevisionBody, PolicyRevisionRow, PolicyRevisionsBody } from '../../model/rows.ts'
import { isApprover } from '../http/callers.ts'
import { isOperator, nameOperator } from '../http/may.ts'
import { parseQuery, readBody, readFlag, readTextField } from '../http/request.ts'
import { readsRules } from '../http/rule-text.ts'
import { shownText } from '../policy/placed.ts'
import { policy } from '../policy/start.ts'
import { asConfigFault } from '../reload/config-fault.ts'
import type { Reloader } from '../reload/reloader.ts'
import { reload } from '../reload/start.ts'
import type { PolicyRevision, PolicyRevisions } from './policy-revisions.ts'
import { revisions } from './start.ts'

export const room: Room = {
  name: 'revisions',
  needs: [revisions, reload, policy],
  open(heart, rooms) {
    const [policies, reloader] = [rooms.ask(revisions), rooms.ask(reload)]
    if (!policies || !reloader) return undefined
    const by = 'person'
    return {
      routes: [
        { method: 'GET', path: '/api/policy/revisions', by, answer: listRoute(heart, policies) },
        { method: 'GET', path: '/api/policy/revisions/:id', by, answer: revisionRoute(heart, policies) },
        { method: 'POST', path: '/api/policy/revisions/:id', by, answer: restoreRoute(policies, reloader) },
        { method: 'DELETE', path: '/api/policy/restored', by, answer: releaseRoute(reloader) },
      ],
    }
  },
}

/** `GET /api/policy/revisions`. A person of a tenant sees none, because a policy concerns all tenants. */
function listRoute({ revisions: rules }: Heart, policies: PolicyRevisions): Answer {
  return async ({ person, query }) => {
    parseQuery(query, {})
    const known = person.tenant === undefined ? await policies.list() : []
    const restored = person.tenant === undefined ? await policies.restored() : undefined
    const inForce = rules.current.policySource?.text
    return {
      revisions: known.map((one, i) => toRow(one, i === 0 && one.text === inForce)),
      mayRestore: isOperator(person),
      ...(restored && { restored: { revision: restored.revision, at: restored.at, ...namedBy(restored) } }),
    } satisfies PolicyRevisionsBody
  }
}

/** `GET /api/policy/revisions/<revision>`: its text, for people who may read the text of rules. */
function revisionRoute(heart: Heart, policies: PolicyRevisions): Answer {
  return async ({ id, person, query }) => {
    parseQuery(query, {})
    if (!isApprover(person) || !readsRules(person))
      throw new ApiFault(
        'reload_forbidden',
        'The text of a policy is for people with the role "approver" and no tenant.',
      )
    const found = await find(policies, id)
    const { policySource } = heart.revisions.current
    const { text } = found
    const shown = shownText({ file: policySource?.file ?? '', line: 1, text }, heart)
    const [latest] = await policies.list()
    const isInForce = latest?.revision === found.revision && text === policySource?.text
    return { ...toRow(found, isInForce), text: shown } satisfies PolicyRevisionBody
  }
}

/** `POST /api/policy/revisions/<revision>`: goes back to this policy. */
function restoreRoute(policies: PolicyRevisions, reloader: Reloader): Answer {
  return async ({ id, person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, ['dryRun', 'preview'])
    const asked = { isDryRun: readFlag(body, 'dryRun'), preview: readTextField(body, 'preview') }
    const by = nameOperator(person, 'reload_forbidden', 'Going back to an earlier policy')
    const earlier = await find(policies, id)
    return asConfigFault(() => reloader.restore(earlier, { ...asked, by }))
  }
}

/** `DELETE /api/policy/restored`: the policy of the file applies again. */
function releaseRoute(reloader: Reloader): Answer {
  return async ({ person, query }) => {
    parseQuery(query, {})
    const by = nameOperator(person, 'reload_forbidden', 'Going back to the policy of the file')
    return asConfigFault(() => reloader.release({ by }))
  }
}

/** @throws {ApiFault} `revision_unknown` */
async function find(policies: PolicyRevisions, id: string): Promise<PolicyRevision> {
  const known = await policies.list()
  const found = known.find(({ revision }) => String(revision) === id)
  if (found) return found
  const kept = known.length === 0 ? 'none is known' : `known are ${known.at(-1)?.revision} to ${known[0]?.revision}`
  throw new ApiFault('revision_unknown', `There is no revision ${JSON.stringify(id)} of the policy; ${kept}.`)
}

function toRow({ text: _text, ...row }: PolicyRevision, isInForce: boolean): PolicyRevisionRow {
  return { ...row, isInForce }
}

function namedBy(one: { readonly by?: string }): { readonly by?: string } {
  return one.by === undefined ? {} : { by: one.by }
}
