import { ConfigError } from '../errors.ts'
import type { Hooks } from './hooks.ts'

export type HooksInput = Hooks | readonly Hooks[]

/** Gives hooks as a list. @throws {ConfigError} for what are none: a misspelt one would never be asked */
export function toHooks(hooks: HooksInput = [], path = 'hooks'): readonly Hooks[] {
  const list: readonly Hooks[] = Array.isArray(hooks) ? hooks : [hooks as Hooks]
  for (const [i, one] of list.entries()) checkHooks(one, Array.isArray(hooks) ? `${path}[${i}]` : path)
  return list
}

const FUNCTIONS = ['beforeToolCall', 'afterToolCall'] as const

function checkHooks(hooks: Hooks, path: string): void {
  if (typeof hooks !== 'object' || hooks === null)
    throw new ConfigError(path, `must be an object with ${FUNCTIONS.join(' or ')}`)
  if (FUNCTIONS.every((name) => hooks[name] === undefined))
    throw new ConfigError(path, `has neither ${FUNCTIONS.join(' nor ')}`)
  for (const name of FUNCTIONS) {
    if (hooks[name] !== undefined && typeof hooks[name] !== 'function')
      throw new ConfigError(`${path}.${name}`, 'must be a function')
  }
}
