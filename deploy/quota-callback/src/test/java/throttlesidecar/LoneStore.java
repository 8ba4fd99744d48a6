package throttlesidecar;

/** What the callback has in a broker, without its connection to the sidecar. */
final class LoneStore {
    private LoneStore() {}

    /** With the quotas of tag sets of its own. */
    static Store of(Settings settings, Moments moments) {
        return of(settings, new Connections(1), RefusalLog.ofBroker(), moments, new Lines());
    }

    static Store of(
            Settings settings,
            Connections connections,
            RefusalLog log,
            Moments moments,
            Journal journal) {
        TagSets tagSets = new TagSets();
        Store store =
                new Store(settings, 1, tagSets, connections, log, () -> null, moments, journal);
        tagSets.enforcement(store.enforcement());
        connections.refusals(store.refusals());
        return store;
    }
}
