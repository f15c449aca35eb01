import {
  checkVariables,
  type Environment,
  ENVIRONMENT_OPTIONS,
  type EnvironmentOptions,
  readVariable,
} from '../policy/environment.ts'
import { parseGroups } from '../tools/groups.ts'
import { checkShape } from '../util/shape.ts'
import { parseLimits, readLimits, type WrittenLimit } from './limits.ts'

const VARIABLE = 'TOOL_RATE_LIMITS'

/**
 * Gives the rate limits that `TOOL_RATE_LIMITS` asks for: `web_search:10/60,*:100/60`, or a JSON list of such texts and of
 * objects as `{"tool":"web_search","max":10,"windowSeconds":60}` or `{"match":"web_search","max":10,"windowMs":60000}`. Blank is
 * unset.
 *
 * @throws {ConfigError} naming the entry that cannot be read
 * @example
 * createGate({ tools, limits: ['*:100/60', ...limitsFromEnv(process.env)] })
 */
export function limitsFromEnv(env: Environment, options: EnvironmentOptions = {}): readonly WrittenLimit[] {
  checkShape('limitsFromEnv', options, ENVIRONMENT_OPTIONS)
  const { groups } = options
  checkVariables(env, VARIABLE, [''])
  const text = readVariable(VARIABLE, env)
  if (text === undefined) return []
  const list = readLimits(text, VARIABLE)
  parseLimits(list, parseGroups(groups).selectors, VARIABLE)
  return list
}
