import type { Decided } from '@toolgate/core/decide'
import { type ParsedPolicy, parsePolicies } from '@toolgate/core/policy'
import { isObject } from '@toolgate/values/json'
import { type Caller, defineCaller, ToolgateError } from '@toolgate/core'
import type { AskedCall, NeededChange } from './needed-change.ts'

/** The caller, input, policies and states after changes. */
export interface Changed {
  readonly caller: Caller
  /** In the order of the current policies. */
  readonly policies: readonly ParsedPolicy[]
  /** The states that have ended. */
  readonly released: ReadonlySet<string>
  readonly call: AskedCall | undefined
}

/** Applies changes; `undefined` if they are not possible. */
export function applyChanges(
  changes: readonly NeededChange[],
  { bounds, today, tool }: Decided,
  call: AskedCall | undefined,
): Changed | undefined {
  let caller: Record<string, unknown> = { ...bounds.caller }
  let input: unknown = call?.input
  let policies = today.policies.map(({ whole }) => whole)
  const released = new Set<string>()
  for (const change of changes) {
    if (change.on === 'caller') caller = withField(caller, change)
    if (change.on === 'input') input = withField(isObject(input) ? input : {}, change)
    if (change.on === 'policy') policies = policies.map((policy) => changePolicy(policy, change, tool?.id ?? ''))
    if (change.state !== undefined) released.add(change.state)
  }
  try {
    // The unknown parts of a caller stay unknown if the caller does not change.
    const isSame = !changes.some(({ on }) => on === 'caller')
    const defined = isSame ? bounds.caller : defineCaller(caller)
    return { caller: defined, policies, released, call: call && { ...call, input } }
  } catch (error) {
    if (error instanceof ToolgateError) return undefined
    throw error
  }
}

/** Returns an object in which a field, or an entry of a list, is changed. */
export function withField(
  object: Readonly<Record<string, unknown>>,
  { does, field = '', value }: Pick<NeededChange, 'does' | 'field' | 'value'>,
): Record<string, unknown> {
  const [name = '', ...below] = field.split('.')
  const now = Object.hasOwn(object, name) ? object[name] : undefined
  if (below.length > 0) {
    const inner = withField(isObject(now) ? now : {}, {
      does,
      field: below.join('.'),
      ...(value !== undefined && { value }),
    })
    return withOwn(object, name, inner)
  }
  const list: readonly unknown[] = Array.isArray(now) ? now : []
  if (does === 'add') return withOwn(object, name, list.includes(value) ? list : [...list, value])
  if (does === 'remove')
    return withOwn(
      object,
      name,
      list.filter((one) => one !== value),
    )
  return withOwn(object, name, value)
}

/** A name such as `__proto__` becomes a field like any other. */
function withOwn(object: Readonly<Record<string, unknown>>, name: string, value: unknown): Record<string, unknown> {
  return Object.fromEntries([...Object.entries(object).filter(([one]) => one !== name), [name, value]])
}

function changePolicy(policy: ParsedPolicy, { does, path = '', value }: NeededChange, id: string): ParsedPolicy {
  if (!path.startsWith(`${policy.path}.`)) return policy
  if (does === 'untag') return { ...policy, requireTags: policy.requireTags.filter((tag) => tag !== value) }
  if (does === 'remove') return { ...policy, deny: policy.deny.filter((clause) => clause.path !== path) }
  const [allowing] = parsePolicies({ allow: policy.allow ? [id] : ['*', id] }, new Map())
  return { ...policy, allow: [...(policy.allow ?? []), ...(allowing?.allow ?? [])] }
}
