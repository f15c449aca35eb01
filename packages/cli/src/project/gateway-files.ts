import type { GatewayConfig } from '@toolgate/gateway'
import type { GatewayFiles } from '@toolgate/stores/backup'
import { keysPath } from './keys-file.ts'

/**
 * Returns the files that a gateway with this configuration writes. `file` is the present or future path of the
 * configuration.
 */
export function gatewayFiles({ audit, state }: GatewayConfig, file: string): GatewayFiles {
  const { store, path, checkpoints } = audit
  return {
    config: file,
    others: [keysPath(file)],
    state: state?.path,
    ...(store === 'memory' || store === 'postgres' || path === undefined
      ? {}
      : {
          audit: {
            store,
            path,
            hasCheckpoints: checkpoints !== false,
            checkpoints: checkpoints === false ? undefined : checkpoints?.path,
          },
        }),
  }
}
