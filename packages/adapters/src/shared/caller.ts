import { type Caller, defineCaller, isDefinedCaller, ToolgateError } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import { checkGiven } from './checks.ts'

/** Who runs: a caller that the host names once, or a function that reads it from what a framework hands over. */
export type CallerOption<Source> = Caller | ((source: Source) => MaybePromise<Caller>)

/**
 * Checks a caller that the host's own code names.
 *
 * @throws {ConfigError} where there is none
 * @throws {ToolgateError} `caller_invalid`
 */
export function checkCaller(caller: Caller | null | undefined): Caller {
  checkGiven(caller)
  return defineCaller(caller as Caller)
}

/**
 * Returns the function that finds the caller of a run, for a framework whose context a client may fill.
 *
 * The option's function reads that context, so its answer counts only if `defineCaller` made it: that object cannot come
 * out of a request.
 *
 * @throws {ConfigError} where the option is missing
 */
export function createCallerOf<Source>(option: CallerOption<Source> | undefined): (source: Source) => Promise<Caller> {
  if (typeof option === 'function') return async (source) => trusted(await option(source))
  const caller = checkCaller(option)
  return async () => caller
}

function trusted(answer: unknown): Caller {
  if (isDefinedCaller(answer)) return answer
  if (typeof answer !== 'object' || answer === null)
    throw new ToolgateError(
      'caller_invalid',
      'guard.caller returned no caller: a run without one sees and runs nothing',
    )
  throw new ToolgateError('caller_untrusted', UNTRUSTED)
}

const UNTRUSTED =
  'guard.caller returned an object that defineCaller did not make, so a client may have written it into the request. ' +
  'Call defineCaller where your server has authenticated the user, and put that very object into the context: ' +
  'copies by JSON, structuredClone or a spread do not count'
