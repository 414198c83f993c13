import {
  type DetailsViewSectionProps,
  registerDetailsViewSection,
  registerPluginSettings,
} from '@kinvolk/headlamp-plugin/lib';
import { NodeSection } from './NodeSection';
import { PageSettings, PLUGIN } from './PageLink';
import { PodSection } from './PodSection';

registerDetailsViewSection(({ resource }: DetailsViewSectionProps) => {
  const { name, namespace, resourceVersion } = resource?.metadata ?? {};
  if (resource?.kind === 'Pod' && name && namespace) {
    return (
      <PodSection
        namespace={namespace}
        name={name}
        cluster={resource.cluster}
        revision={resourceVersion}
      />
    );
  }
  if (resource?.kind === 'Node' && name) {
    return <NodeSection name={name} cluster={resource.cluster} />;
  }
  return null;
});

registerPluginSettings(PLUGIN, PageSettings, true);
