import { PIN_STATUSES, type PinnedTool } from '@toolgate/core/pins'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { createProgramReader } from '../../servers/catalog/program.ts'
import { type ServerIdentities, watchIdentities } from '../../servers/catalog/server-identity.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** Watches the program that each server runs, unless pins are off. */
export const pins: Room = {
  name: 'pins',
  open(heart) {
    const identities = openIdentities(heart)
    return {
      metrics: [() => pinsFamily(heart.gate.pins.list())],
      renew: () => identities?.renew(),
      async close() {
        await identities?.settled()
        identities?.close()
      },
    }
  },
}

function openIdentities({
  config,
  servers,
  stores,
  clock,
  redact,
  gate,
  onFault,
}: Heart): ServerIdentities | undefined {
  const isOff = (typeof config.pins === 'object' ? config.pins.changed : config.pins) === 'off'
  if (isOff) return undefined
  const identities = watchIdentities({
    servers: () => servers.fleet.watched,
    state: stores.state,
    programOf: createProgramReader(),
    audit: stores.audit,
    clock,
    redact,
    revisions: () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision }),
    onFault,
  })
  servers.fleet.showChanges((name) => identities.changeOf(name))
  return identities
}

export function pinsFamily(all: readonly Pick<PinnedTool, 'status'>[]): Family {
  return {
    name: 'toolgate_pins',
    type: 'gauge',
    help: 'Tools by the state of their pinned definition.',
    samples: PIN_STATUSES.map((status) => ({
      labels: { status },
      value: all.filter((pin) => pin.status === status).length,
    })),
  }
}
