import type { View } from '@toolgate/core'
import { kindOfId } from '@toolgate/core/tools'
import type { Heart } from '../../heart/heart.ts'

/**
 * Returns the wire name of a tool or a prompt, if it has one. With a view, items on the caller's own lists count too.
 */
export function wireNameOf({ catalog }: Pick<Heart, 'catalog'>, id: string, view?: View): string | undefined {
  const { lists } = catalog
  const namesOf = (of?: View) => (kindOfId(id) === 'prompt' ? lists.promptNames(of) : lists.names(of))
  return namesOf().toName(id) ?? (view && namesOf(view).toName(id))
}
