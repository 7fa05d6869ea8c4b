"""The whole: what a model is (`config`, without torch), how it is put together (`build`), and the models themselves."""
