import { ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route, time } from '../request.ts'
import { nameOperator } from './reload.ts'

/** A file of 1 MiB, each character of which JSON may escape. */
const MAX_BODY_BYTES = 2 * 1024 * 1024

/**
 * `POST /api/what-if`: what the rules of another configuration would mean for callers and recorded calls. Changes nothing. One
 * at a time; it ends when its client goes.
 */
export function whatIfRoute({ whatIf }: ApiDeps): Route {
  let isBusy = false
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, ['config', 'since'], MAX_BODY_BYTES)
    nameOperator(person, 'what_if_forbidden', 'A what-if')
    const text = body.get('config')
    if (typeof text !== 'string') throw invalidBody('The field "config" must be the text of a configuration.')
    const since = readSince(body.get('since'))
    if (!whatIf) throw new ApiFault('reload_refused', 'This gateway has no file to compare with.')
    if (isBusy) throw new ApiFault('what_if_busy', 'Another what-if is running; ask again when it has ended.')
    isBusy = true
    try {
      return await whatIf({ text, since, person, signal: request.signal })
    } catch (error) {
      if (error instanceof ConfigFileError || error instanceof ConfigError)
        throw new ApiFault('config_invalid', error.message)
      throw error
    } finally {
      isBusy = false
    }
  }
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
