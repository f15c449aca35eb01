import type { Heart } from '../../heart/heart.ts'

/** Records a change that a person has made to the gateway. */
export async function recordChange(
  { gate, stores, clock }: Pick<Heart, 'gate' | 'stores' | 'clock'>,
  reason: string,
  { detail, by }: { readonly detail: string; readonly by: string },
): Promise<void> {
  const revisions = { policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision }
  const entry = { event: 'config_changed', reason, detail, user_id: by } as const
  await stores.audit.write({ ...entry, wallMs: clock.wallMs(), ...revisions })
}
