import { ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route, time } from '../request.ts'
import type { AskedChange } from '../../change/what-if.ts'
import { isRedacted } from './policy.ts'
import { nameOperator } from './reload.ts'

/** A file of 1 MiB, each character of which JSON may escape. */
const MAX_BODY_BYTES = 2 * 1024 * 1024

/**
 * `POST /api/what-if`: what the rules of another configuration would mean for callers and recorded calls. Changes nothing. One
 * at a time; it ends when its client goes.
 */
export function whatIfRoute(deps: ApiDeps): Route {
  const { whatIf } = deps
  let isBusy = false
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, ['config', 'policy', 'since'], MAX_BODY_BYTES)
    nameOperator(person, 'what_if_forbidden', 'A what-if')
    const change = readChange(body)
    const since = readSince(body.get('since'))
    if (!whatIf) throw new ApiFault('reload_refused', 'This gateway has no file to compare with.')
    if (change.isPolicy && isRedacted(deps))
      throw new ApiFault('reload_refused', 'The policy holds text that is redacted here; change it in the file.')
    if (isBusy) throw new ApiFault('what_if_busy', 'Another what-if is running; ask again when it has ended.')
    isBusy = true
    try {
      return await whatIf({ ...change, since, person, signal: request.signal })
    } catch (error) {
      if (error instanceof ConfigFileError || error instanceof ConfigError)
        throw new ApiFault('config_invalid', error.message)
      throw error
    } finally {
      isBusy = false
    }
  }
}

function readChange(body: ReadonlyMap<string, unknown>): Pick<AskedChange, 'text' | 'isPolicy'> {
  const [config, policy] = [body.get('config'), body.get('policy')]
  if (typeof config === 'string' && policy === undefined) return { text: config, isPolicy: false }
  if (typeof policy === 'string' && config === undefined) return { text: policy, isPolicy: true }
  throw invalidBody('The body must have "config", the text of a configuration, or "policy", that of its section.')
}

function readSince(value: unknown): number | undefined {
  if (value === undefined) return undefined
  try {
    if (typeof value === 'string' || typeof value === 'number') return time(String(value))
  } catch {
    // As below.
  }
  throw invalidBody('The field "since" must be a time such as 2026-11-21T09:00:00Z, or milliseconds since 1970.')
}
