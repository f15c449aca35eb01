import path from 'node:path'
import type { Room } from '../../heart/room.ts'
import { PolicyRevisions } from './policy-revisions.ts'

/** Records the policies that were in force, and keeps the one that a person restored. */
export const revisions: Room<PolicyRevisions> = {
  name: 'revisions',
  open({ stores, revisions: rules, config }) {
    return {
      service: new PolicyRevisions(stores.state),
      warnings() {
        const { restored } = rules.current.policySource ?? {}
        if (!restored) return []
        const text = `policy revision ${restored.revision} was restored, and applies until the policy of the file changes`
        return [{ code: 'policy_restored', path: path.basename(config.file), text }]
      },
    }
  },
}
