import { ConfigStore, type PluginSettingsDetailsProps } from '@kinvolk/headlamp-plugin/lib';
import { Link, TextField } from '@mui/material';
import { useTexts } from './text';

/** The plugin's name, by which Headlamp finds its settings. */
export const PLUGIN = 'schedulerlog';

interface Settings {
  /** Where the API serves its pages: an origin, of http or https. */
  pages?: string;
}

const useSettings = new ConfigStore<Settings>(PLUGIN).useConfig();

/** A link to a page of the API; nothing where its address is not set. */
export function PageLink({ path }: { path: string }) {
  const { t, language } = useTexts();
  const address = pageAddress(useSettings()?.pages, path, language);
  if (!address) return null;
  return (
    <Link href={address} target="_blank" rel="noopener noreferrer" sx={{ display: 'block', mt: 1 }}>
      {t('All of it in schedulerlog')}
    </Link>
  );
}

/** The address of a page, in a language; undefined where `pages` is no address of http or https. */
export function pageAddress(pages: string | undefined, path: string, language: string) {
  if (!pages || !URL.canParse(pages)) return undefined;
  const address = new URL(pages);
  if (!['http:', 'https:'].includes(address.protocol)) return undefined;
  address.pathname = address.pathname.replace(/\/$/, '') + path;
  address.search = new URLSearchParams({ lang: language }).toString();
  return address.href;
}

/** The setting of the address, in Headlamp's settings of plugins. */
export function PageSettings({ data, onDataChange }: PluginSettingsDetailsProps) {
  const { t } = useTexts();
  return (
    <TextField
      fullWidth
      type="url"
      label={t("Address of schedulerlog's pages")}
      placeholder="https://schedulerlog.example.com"
      value={data?.pages ?? ''}
      onChange={event => onDataChange?.({ ...data, pages: event.target.value })}
    />
  );
}
