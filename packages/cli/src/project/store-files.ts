import type { GatewayConfig } from '@toolgate/gateway'

/** A file that keeps the gateway from starting: of another kind, or of a later version. */
interface UnusableFile {
  readonly path: string
  readonly why: string
}

/** Returns the files of a configuration that cannot be used. Changes nothing. */
export async function findUnusableFiles({ audit, state }: GatewayConfig): Promise<readonly UnusableFile[]> {
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
