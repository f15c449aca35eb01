import type { Gate } from '@toolgate/core'
import type { Redactor } from '@toolgate/core/redact'
import type { GroupConfig } from '../config/config.ts'
import { redactNeed } from '../redaction.ts'
import type { NeedRow } from './wire.ts'

export interface NeedRowDeps {
  readonly gate: Pick<Gate, 'needsOf'>
  readonly groups: readonly Pick<GroupConfig, 'name'>[]
  readonly redact: Redactor
}

/** Returns a function that shows what an app needs. Only configured groups are named: nobody wrote those of the servers. */
export function createNeedRows({ gate, groups, redact }: NeedRowDeps): (app?: string) => readonly NeedRow[] {
  const configured = new Set(groups.map(({ name }) => name))
  return (app) =>
    gate
      .needsOf(app)
      .map((need) => redactNeed({ ...need, groups: need.groups.filter((name) => configured.has(name)) }, redact))
}
