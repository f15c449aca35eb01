import { createGate, type Gate, type GateOptions } from '@toolgate/core'
import { alwaysAvailable } from '@toolgate/core/internal'
import type { Group } from '@toolgate/core/groups'
import { toGroupMap } from '@toolgate/core/policy'
import type { Source } from '@toolgate/core/toolset'
import { createStage, type StagedCatalog } from './stage.ts'

/** The rules of a gate about who may use what, without the current availability, halts and pins. */
export type TrialRules = Pick<
  GateOptions,
  'groups' | 'apps' | 'aliases' | 'policy' | 'limits' | 'labels' | 'stepUp' | 'history'
>

/** The clock of a trial. It stands still until it is set. */
export interface TrialClock {
  nowMs: number
}

/**
 * Creates a gate with some rules over a catalog, to evaluate the rules. It runs nothing and stores nothing.
 *
 * @throws {ConfigError} for invalid rules
 */
export function createTrial(catalog: StagedCatalog, rules: TrialRules, clock: TrialClock = { nowMs: 0 }): Gate {
  const { groups, ...others } = rules
  return createGate({
    ...others,
    ...(groups && { groups: openGroups(groups) }),
    sources: [...createStage(catalog).sources, LATER],
    availability: alwaysAvailable,
    clock: { wallMs: () => clock.nowMs, monotonicMs: () => clock.nowMs },
    pins: 'off',
    definitions: 'off',
    onWarning: () => {},
  })
}

/** A source without tools, as in a gateway whose servers are down, so that an unknown name is not an error. */
const LATER: Source = { name: 'later', namespaces: [], tools: () => [], subscribe: () => () => {} }

/** Returns the groups without locks, loads and probes. */
function openGroups(groups: NonNullable<TrialRules['groups']>): ReadonlyMap<string, Group> {
  return new Map(
    [...toGroupMap(groups)].map(
      ([name, { unlock: _, load: __, loadTimeoutMs: ___, availableWhen: ____, ...group }]) => [
        name,
        { ...group, visibility: 'always' as const },
      ],
    ),
  )
}
