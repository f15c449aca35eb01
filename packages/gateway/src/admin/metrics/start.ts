import type { Room } from '../../heart/room.ts'
import { toExposition } from '../../telemetry/exposition.ts'
import { createMetricsEndpoint, type MetricsEndpoint } from './metrics-endpoint.ts'
import { certificateFamilies, processFamilies } from './process-families.ts'

/** Serves the metrics of all rooms at `/metrics`. */
export const metrics: Room<MetricsEndpoint> = {
  name: 'metrics',
  open({ config, door }, rooms) {
    const { authenticator, origins, logins } = door
    const isPublic = config.metrics?.public ?? false
    return {
      service: createMetricsEndpoint({
        authenticator,
        origins,
        logins,
        isPublic,
        metrics: async (person) => toExposition(await rooms.metrics(person)),
      }),
      metrics: [() => certificateFamilies(door.certificateExpiresAtMs()), processFamilies],
    }
  },
}
