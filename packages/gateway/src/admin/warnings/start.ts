import type { Room } from '../../heart/room.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** Likely mistakes in the file, and in the items that servers offer. */
export const warnings: Room = {
  name: 'warnings',
  open({ catalog, redact }) {
    const { list, logNew } = catalog.warnings
    return {
      warnings: () => list().map((warning) => ({ ...warning, text: redact.redactText(warning.text) })),
      metrics: [() => warningsFamily(list().map(({ code }) => code))],
      started: logNew,
    }
  },
}

/** Problems that have a metric even if it is 0, as they arise silently, for example when a server renames a tool. */
const ALWAYS_SHOWN = ['selector_unmatched', 'tool_unreachable', 'name_confusable']

function warningsFamily(found: readonly string[]): Family {
  const codes = [...new Set([...ALWAYS_SHOWN, ...found])]
  return {
    name: 'toolgate_policy_warnings',
    type: 'gauge',
    help: 'Likely mistakes in the configuration, such as a selector that matches nothing.',
    samples: codes.map((code) => ({ labels: { code }, value: found.filter((one) => one === code).length })),
  }
}
