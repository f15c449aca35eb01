import type { GatewayConfig } from '@toolgate/gateway'

/** Returns the unusable files of a configuration. Changes nothing. */
export async function findUnusableFiles({
  audit,
  state,
}: GatewayConfig): Promise<readonly { readonly path: string; readonly why: string }[]> {
  const { findFileProblem } = await import('@toolgate/stores/verify')
  const { store } = audit
  const found = [
    {
      path: audit.path,
      why: audit.path && store !== 'memory' && store !== 'postgres' && findFileProblem(audit.path, 'audit', store),
    },
    { path: state?.path, why: state?.path && findFileProblem(state.path, 'state', 'sqlite') },
  ]
  return found.flatMap(({ path, why }) => (path && why ? [{ path, why }] : []))
}
