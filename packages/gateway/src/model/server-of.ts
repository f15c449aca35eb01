import { kindOfId } from '@toolgate/core/tools'

/** Returns the server of an item: `files` of `files:read`, and of `resource:files:…` and `prompt:files:…`. */
export function serverOf(id: string): string {
  return id.split(':')[kindOfId(id) === 'tool' ? 0 : 1] ?? ''
}
